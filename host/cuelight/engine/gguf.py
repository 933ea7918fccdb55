"""GGUF files: metadata and tensors, every length checked against the file before it is believed.

Follows the format's specification, https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little
endian. The `gguf` package knows the quantizations; its reader trusts the file's counts and is slow on vocabularies.
"""

from __future__ import annotations

import mmap
import struct
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from cuelight.errors import ModelFileError, UnsupportedModel

__all__ = ["GgufFile", "GgufTensor"]

_MAGIC = b"GGUF"
_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_MAX_DIMENSIONS = 4


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """Where a tensor lies.

    Parameters
    ----------
    name
        Name in llama.cpp's scheme.
    shape
        Slowest dimension first, as numpy counts.
    kind
        Quantization, a `gguf.GGMLQuantizationType`.
    offset, size
        In the file, bytes.
    """

    name: str
    shape: tuple[int, ...]
    kind: gguf.GGMLQuantizationType
    offset: int
    size: int


class GgufFile:
    """An open GGUF file; use it as a context manager.

    Parameters
    ----------
    path
        The file.

    Attributes
    ----------
    metadata : dict
        Key to number, string, bool or list of them.
    tensors : dict
        Name to `GgufTensor`.

    Raises
    ------
    ModelFileError
        The file is unreadable, no GGUF, truncated or inconsistent.
    UnsupportedModel
        A version or quantization that is not known here.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise ModelFileError(f"{path} cannot be read ({error}); check the path and its permissions.") from error
        self._position = 0
        try:
            self._read_header()
        except BaseException:
            self._bytes.close()
            raise

    def __enter__(self) -> GgufFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._bytes.close()

    def load(self, name: str) -> NDArray[np.float32]:
        """Dequantize one tensor to float32.

        Raises
        ------
        ModelFileError
            The file has no such tensor.
        UnsupportedModel
            Its quantization cannot be dequantized.
        """
        if (tensor := self.tensors.get(name)) is None:
            raise ModelFileError(f"{self.path} lacks the tensor {name}; fetch the model again.")
        raw = np.frombuffer(self._bytes, np.uint8, tensor.size, tensor.offset).copy()
        values = self._dequantize(raw.reshape(*tensor.shape[:-1], -1), tensor)
        return np.ascontiguousarray(values, np.float32).reshape(tensor.shape)

    @property
    def quantization(self) -> str:
        """Quantization of most of the tensors' bytes."""
        sizes: Counter[str] = Counter()
        for tensor in self.tensors.values():
            sizes[tensor.kind.name] += tensor.size
        return max(sizes, key=sizes.__getitem__, default="none")

    def check_quantizations(self) -> None:
        """Find out from a block of zeros each whether all tensors can be dequantized; raises as `load` would."""
        for tensor in {tensor.kind: tensor for tensor in self.tensors.values()}.values():
            self._dequantize(np.zeros((1, gguf.GGML_QUANT_SIZES[tensor.kind][1]), np.uint8), tensor)

    def _dequantize(self, raw: NDArray[np.uint8], tensor: GgufTensor) -> NDArray[Any]:
        try:
            return gguf.dequantize(raw, tensor.kind)
        except NotImplementedError as error:
            raise UnsupportedModel(
                f"{self.path} quantizes {tensor.name} as {tensor.kind.name}, which cannot be dequantized here; "
                "take the model in another quantization."
            ) from error

    def _read_header(self) -> None:
        if self._take(4) != _MAGIC:
            raise ModelFileError(f"{self.path} is no GGUF file; give the path of a .gguf model.")
        version = self._number("I")
        if version not in (2, 3):
            raise UnsupportedModel(f"{self.path} is GGUF version {version}; versions 2 and 3 little endian are known.")
        tensors, keys = self._count(8 + 4 + 4 + 8), self._count(8 + 4 + 1)
        self.metadata: dict[str, Any] = {}
        for _ in range(keys):
            key = self._string()
            self.metadata[key] = self._value(self._number("I"))
        infos = [self._tensor_info() for _ in range(tensors)]
        alignment = self.metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1:
            raise self._damaged(f"alignment {alignment!r}")
        start = -(-self._position // alignment) * alignment
        self.tensors: dict[str, GgufTensor] = {}
        for name, shape, kind, offset in infos:
            if name in self.tensors:
                raise self._damaged(f"two tensors named {name}")
            self.tensors[name] = self._place(name, shape, kind, start + offset)

    def _tensor_info(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._string()
        dimensions = self._number("I")
        if not 1 <= dimensions <= _MAX_DIMENSIONS:
            raise self._damaged(f"tensor {name} with {dimensions} dimensions")
        shape = tuple(reversed([self._number("Q") for _ in range(dimensions)]))
        return name, shape, self._number("I"), self._number("Q")

    def _place(self, name: str, shape: tuple[int, ...], kind: int, offset: int) -> GgufTensor:
        try:
            quantization = gguf.GGMLQuantizationType(kind)
        except ValueError as error:
            raise UnsupportedModel(
                f"{self.path} quantizes {name} by type {kind}, which is not known here; take another quantization."
            ) from error
        block, block_bytes = gguf.GGML_QUANT_SIZES[quantization]
        elements = 1
        for length in shape:
            elements *= length
        if not elements or shape[-1] % block:
            raise self._damaged(f"tensor {name} of shape {shape}")
        size = elements // block * block_bytes
        if offset + size > len(self._bytes):
            raise ModelFileError(
                f"{self.path} is truncated: {name} ends at byte {offset + size} of {len(self._bytes)}; fetch it again."
            )
        return GgufTensor(name, shape, quantization, offset, size)

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            inner = self._number("I")
            if inner == _STRING:
                return [self._string() for _ in range(self._count(8))]
            code = self._scalar(inner)
            count = self._count(struct.calcsize(code))
            return list(struct.unpack(f"<{count}{code}", self._take(count * struct.calcsize(code))))
        return self._number(self._scalar(kind))

    def _scalar(self, kind: int) -> str:
        if kind not in _SCALARS:
            raise self._damaged(f"metadata of type {kind}")
        return _SCALARS[kind]

    def _count(self, least_bytes: int) -> int:
        count = int(self._number("Q"))
        if count * least_bytes > len(self._bytes) - self._position:
            raise self._damaged(f"{count} items announced where they cannot fit")
        return count

    def _string(self) -> str:
        raw = self._take(self._count(1))
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._damaged("text that is no UTF-8") from error

    def _number(self, code: str) -> Any:
        return struct.unpack(f"<{code}", self._take(struct.calcsize(code)))[0]

    def _take(self, count: int) -> bytes:
        end = self._position + count
        if end > len(self._bytes):
            raise self._damaged("an end of file")
        piece = self._bytes[self._position : end]
        self._position = end
        return piece

    def _damaged(self, what: str) -> ModelFileError:
        return ModelFileError(
            f"{self.path} is truncated or damaged: {what} near byte {self._position}; fetch the model again."
        )
