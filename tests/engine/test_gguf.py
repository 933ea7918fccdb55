"""GGUF files: converted faithfully if whole, refused with a sentence if not."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cuelight.engine.batch import Batch, Span
from cuelight.engine.cache import KvCache
from cuelight.engine.config import load_config
from cuelight.engine.convert import convert
from cuelight.engine.gguf import GgufFile
from cuelight.engine.model import Llama
from cuelight.errors import CuelightError, ModelFileError, UnsupportedModel

from .tiny import FAMILIES, write_gguf


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_gguf(path)
    return path


def test_reader_agrees_with_the_gguf_package(whole: Path) -> None:
    reader = gguf.GGUFReader(whole)
    with GgufFile(whole) as file:
        for key, field in reader.fields.items():
            if not key.startswith("GGUF."):
                assert file.metadata[key] == field.contents()
        assert list(file.tensors) == [tensor.name for tensor in reader.tensors]
        for tensor in reader.tensors:
            expected = gguf.dequantize(tensor.data, tensor.tensor_type)
            np.testing.assert_array_equal(file.load(tensor.name), expected)


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_converted_model_runs_in_transformers_and_here_alike(family: str, tmp_path: Path) -> None:
    shares: list[float] = []
    fields: Any = {"general.architecture": family}
    write_gguf(tmp_path / "tiny.gguf", **fields)
    convert(tmp_path / "tiny.gguf", tmp_path, lambda what, share: shares.append(share))
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    reference: Any = FAMILIES[family][1].from_pretrained(tmp_path)
    # Nothing was lost: transformers would have drawn at random what it misses.
    with GgufFile(tmp_path / "tiny.gguf") as file:
        assert len(file.tensors) == len(reference.state_dict()) - 1
    model = Llama.load(tmp_path)
    tokens = np.arange(90, dtype=np.int32)
    batch = Batch([Span(tokens, 0, np.array([1, 0], np.int32))], model.config)
    cache = KvCache(model.config, 2)
    logits = model.logits(model.run_layers(model.embed(batch), range(model.config.layers), batch, cache))
    with torch.inference_mode():
        expected = reference(torch.tensor(tokens[None].astype(np.int64))).logits[0]
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-3)


def test_rows_of_q_and_k_are_reordered_for_llama_only(tmp_path: Path) -> None:
    for family in ("llama", "qwen2", "qwen3"):
        folder = tmp_path / family
        folder.mkdir()
        fields: Any = {"general.architecture": family}
        write_gguf(folder / "tiny.gguf", **fields)
        convert(folder / "tiny.gguf", folder)
        model = FAMILIES[family][1].from_pretrained(folder)
        with GgufFile(folder / "tiny.gguf") as file:
            stored = torch.from_numpy(file.load("blk.0.attn_k.weight"))
        taken = model.model.layers[0].self_attn.k_proj.weight.detach()
        expected = stored.view(2, 8, 2, 64).transpose(1, 2).reshape(32, 64) if family == "llama" else stored
        assert torch.equal(taken, expected)


def test_tensors_of_another_family_are_refused(tmp_path: Path) -> None:
    fields: Any = {"general.architecture": "qwen2"}
    write_gguf(tmp_path / "odd.gguf", **fields)
    content = (tmp_path / "odd.gguf").read_bytes()
    (tmp_path / "odd.gguf").write_bytes(content.replace(b"blk.0.attn_q.bias", b"blk.0.ffn_up.bias"))
    assert "ffn_up.bias" in refuse(tmp_path / "odd.gguf", tmp_path / "out", UnsupportedModel)


@pytest.mark.parametrize(
    ("fields", "rule", "factor"),
    [
        ({"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}, "linear", 4.0),
        (
            {
                "llama.rope.scaling.type": "yarn",
                "llama.rope.scaling.factor": 2.0,
                "llama.rope.scaling.original_context_length": 128,
            },
            "yarn",
            2.0,
        ),
    ],
)
def test_rope_scaling_is_taken_over(fields: dict[str, Any], rule: str, factor: float, tmp_path: Path) -> None:
    write_gguf(tmp_path / "scaled.gguf", **fields)
    (tmp_path / "model").mkdir()
    convert(tmp_path / "scaled.gguf", tmp_path / "model")
    rope = load_config(tmp_path / "model").rope
    assert (rope.rule, rope.factor) == (rule, factor)


def refuse(path: Path, folder: Path, error: type[CuelightError]) -> str:
    folder.mkdir(exist_ok=True)
    with pytest.raises(error) as caught:
        convert(path, folder)
    sentence = str(caught.value)
    assert path.name in sentence
    assert sentence.endswith(".")
    return sentence


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read"),
        (b"", "cannot be read"),
        (b"GG", "damaged"),
        (b"PK\x03\x04 not a model", "no GGUF file"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1, 1 << 60), "cannot fit"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0), "cannot fit"),
    ],
)
def test_files_that_are_no_gguf_are_refused(content: bytes | None, words: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    if content is not None:
        path.write_bytes(content)
    assert words in refuse(path, tmp_path / "out", ModelFileError)


def test_folder_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.gguf").mkdir()
    refuse(tmp_path / "folder.gguf", tmp_path / "out", ModelFileError)


@pytest.mark.parametrize("version", [1, 4, 0x03000000])
def test_other_versions_are_refused(version: int, tmp_path: Path) -> None:
    (tmp_path / "other.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", version, 0, 0))
    refuse(tmp_path / "other.gguf", tmp_path / "out", UnsupportedModel)


def test_file_cut_anywhere_is_refused(whole: Path, tmp_path: Path) -> None:
    content = whole.read_bytes()
    path = tmp_path / "cut.gguf"
    for length in [*range(1, 200, 7), *range(200, len(content), len(content) // 40), len(content) - 1]:
        path.write_bytes(content[:length])
        refuse(path, tmp_path / "out", ModelFileError)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_flipped_bytes_in_the_head_never_hang_or_crash(data: st.DataObject, whole: Path, tmp_path_factory: Any) -> None:
    content = bytearray(whole.read_bytes())
    with GgufFile(whole) as file:
        head = min(tensor.offset for tensor in file.tensors.values())
    for at in data.draw(st.lists(st.integers(0, head - 1), min_size=1, max_size=4)):
        content[at] = data.draw(st.integers(0, 255))
    folder = tmp_path_factory.mktemp("flipped")
    (folder / "flipped.gguf").write_bytes(content)
    (folder / "out").mkdir()
    with contextlib.suppress(CuelightError):
        convert(folder / "flipped.gguf", folder / "out")
        Llama.load(folder / "out")


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"general.architecture": "gemma"}, UnsupportedModel),
        ({"llama.expert_count": 8}, UnsupportedModel),
        ({"llama.rope.dimension_count": 8}, UnsupportedModel),
        ({"llama.rope.scaling.type": "longrope"}, UnsupportedModel),
        ({"llama.block_count": None}, ModelFileError),
        ({"llama.attention.head_count": 0}, ModelFileError),
        ({"tokenizer.ggml.model": "bert"}, UnsupportedModel),
        ({"tokenizer.ggml.tokens": None}, ModelFileError),
    ],
)
def test_models_this_engine_has_not_are_refused(
    fields: dict[str, Any], error: type[CuelightError], tmp_path: Path
) -> None:
    write_gguf(tmp_path / "other.gguf", **fields)
    refuse(tmp_path / "other.gguf", tmp_path / "out", error)
