"""Memory that the host and its lanes share: slot records, token masks, and for each lane a port with its rings.

The layout is that of `cuelight.regmap`: `Segment`, `SlotRecord`, `Mask`, `LanePort`. A lane can write anything anywhere
in it, so the host keeps what it relies on (sizes, offsets, ring indices) to itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import mmap
import os
import secrets
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cuelight import regmap
from cuelight.errors import DeviceClosed, InvalidArgument, SegmentError
from cuelight.filters import MAX_BIASES, Filters
from cuelight.lanes.types import LaneToken, SlotRecord
from cuelight.native.lane_port import lane_port_library

__all__ = ["Segment", "Shape"]

_FOLDER = Path("/dev/shm")
_PREFIX = "cuelight-"
_MAGIC = int.from_bytes(b"CLSM", "little")
_LAYOUT = 3
_PAGE = 4096
_LINE = 64
_TOKEN = struct.Struct("<IIIfI")


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a segment.

    Parameters
    ----------
    lanes, slots, seats
        As on the device.
    tokens
        Entries of a lane's token ring, a power of two.
    context
        Prompt positions a slot record can hold.
    blocks
        KV blocks a slot record can name.
    vocabulary
        Tokens a mask covers; 0: there are no masks.
    """

    lanes: int = 2
    slots: int = 1024
    seats: int = 64
    tokens: int = 1024
    context: int = 2048
    blocks: int = 32
    vocabulary: int = 0

    def __post_init__(self) -> None:
        for name, low, high in (
            ("lanes", 1, 8),
            ("slots", 1, 4096),
            ("seats", 1, 256),
            ("tokens", 2, 1 << 20),
            ("context", 1, 1 << 20),
            ("blocks", 1, 1 << 16),
            ("vocabulary", 0, 1 << 20),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise InvalidArgument(f"A segment's {name} must be {low} to {high}, not {value}.")
        if self.tokens & (self.tokens - 1):
            raise InvalidArgument(f"A segment's tokens must be a power of two, not {self.tokens}.")

    @property
    def ports(self) -> int:
        """Offset of lane port 0, in bytes."""
        return _PAGE

    @property
    def port_stride(self) -> int:
        """Bytes from one lane port to the next."""
        return _round_up(regmap.LanePort.SIZE + self.tokens * regmap.LanePort.TOKEN_RING_STRIDE, _PAGE)

    @property
    def records(self) -> int:
        """Offset of slot record 0, in bytes."""
        return self.ports + self.lanes * self.port_stride

    @property
    def record_stride(self) -> int:
        """Bytes from one slot record to the next."""
        return _round_up(regmap.SlotRecord.SIZE + 4 * (self.blocks + self.context), _LINE)

    @property
    def masks(self) -> int:
        """Offset of the mask of slot 0, in bytes."""
        return self.records + self.slots * self.record_stride

    @property
    def mask_words(self) -> int:
        """Words of 32 bits that the tokens of a mask take."""
        return -(-self.vocabulary // 32)

    @property
    def mask_stride(self) -> int:
        """Bytes from one mask to the next."""
        return _round_up(regmap.Mask.SIZE + 4 * self.mask_words, _LINE) if self.vocabulary else 0

    @property
    def size(self) -> int:
        """Bytes in all."""
        return _round_up(self.masks + self.slots * self.mask_stride, _PAGE)


class Segment:
    """A mapped segment, made by the host with `create` and by a lane with `open`.

    Safe from several threads, but a slot's record has one writer at a time and a lane's tokens one reader.
    """

    def __init__(self, path: Path, shape: Shape, descriptor: int, *, owner: bool) -> None:
        self.path = path
        self.shape = shape
        self._owner = owner
        self._descriptor = descriptor
        words = np.frombuffer(mmap.mmap(descriptor, shape.size), dtype=np.uint32)
        self._words: NDArray[np.uint32] | None = words
        self._base = words.ctypes.data
        self._native = lane_port_library()
        self._taken = [0] * shape.lanes
        self._tokens = [(ctypes.c_char * (_TOKEN.size * shape.tokens))() for _ in range(shape.lanes)]

    @classmethod
    def create(cls, shape: Shape) -> Segment:
        """Make a segment of zeros under a new name, readable and writable by this user only.

        Raises
        ------
        SegmentError
            There is no room or no right to make it.
        """
        _sweep()
        path = _FOLDER / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(8)}"
        try:
            descriptor = os.open(_FOLDER, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise SegmentError(f"{path} cannot be created ({error.strerror}); make {_FOLDER} writable.") from error
        try:
            # Tells the sweep of another process that this one lives; so before it has a name.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # All of it now: a store to a page for which there is no room later would kill the process.
            os.posix_fallocate(descriptor, 0, shape.size)
            segment = cls(path, shape, descriptor, owner=True)
            # Python follows the link only when it is given a folder, which an absolute path makes void.
            os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor, follow_symlinks=True)
        except BaseException as error:
            os.close(descriptor)
            if not isinstance(error, OSError):
                raise
            raise SegmentError(
                f"{path} cannot have {shape.size} bytes ({error.strerror}); free some of {_FOLDER}, or ask for "
                "fewer slots or a shorter context."
            ) from error
        header = segment._memory()
        for register, value in _header(shape).items():
            header[register // 4] = value
        header[regmap.Segment.MAGIC // 4] = _MAGIC
        return segment

    @classmethod
    def open(cls, path: str | Path) -> Segment:
        """Map the segment of another process.

        Raises
        ------
        SegmentError
            There is none at `path`, or it has another layout.
        """
        path = Path(path)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise SegmentError(
                f"Segment {path} cannot be opened ({error.strerror}); start the lane with the path of a running device."
            ) from error
        try:
            return cls(path, _read_header(path, descriptor), descriptor, owner=False)
        except BaseException:
            os.close(descriptor)
            raise

    @property
    def descriptor(self) -> int:
        """The open file, for native code that maps it itself."""
        return self._descriptor

    def close(self) -> None:
        """Let go of it, and remove its name if this process made it; a second call does nothing."""
        if self._words is None:
            return
        # Unmapped when the last call that is still in it returns.
        self._words = None
        if self._owner:
            self.path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            os.close(self._descriptor)

    def write_slot_record(self, slot: int, record: SlotRecord) -> None:
        """Fill a slot's record, its request id last; to be called before the request is admitted.

        Raises
        ------
        InvalidArgument
            The slot does not exist, or prompt or block table do not fit.
        """
        prompt, table = len(record.prompt), len(record.block_table)
        for name, count, limit in (
            ("prompt", prompt, self.shape.context),
            ("block table", table, self.shape.blocks),
            ("logit bias", len(record.filters.logit_bias), MAX_BIASES),
        ):
            if count > limit:
                raise InvalidArgument(f"A slot record holds a {name} of at most {limit}, not {count}; shorten it.")
        words = self._slot(slot)
        words[regmap.SlotRecord.REQUEST // 4] = 0
        words[regmap.SlotRecord.PROMPT // 4] = prompt
        words[regmap.SlotRecord.LIMIT // 4] = record.limit
        words[regmap.SlotRecord.BLOCKS // 4] = table
        words[regmap.SlotRecord.TEMPERATURE // 4 :].view(np.float32)[0] = record.temperature
        words[regmap.SlotRecord.FLAGS // 4] = regmap.SlotRecordFlags(record.ignore_eos, record.masked).pack()
        seed = regmap.SlotRecord.SEED // 4
        words[seed], words[seed + 1] = record.seed & 0xFFFF_FFFF, record.seed >> 32 & 0xFFFF_FFFF
        _write_filters(words, record.filters)
        words[regmap.SlotRecord.TOP_LOGPROBS // 4] = record.top_logprobs
        words[regmap.SlotRecord.PRODUCED // 4] = record.produced
        start = regmap.SlotRecord.TABLE // 4
        words[start : start + table] = record.block_table
        start += self.shape.blocks
        words[start : start + prompt] = record.prompt
        words[regmap.SlotRecord.REQUEST // 4] = record.request_id

    def slot_record(self, slot: int) -> SlotRecord:
        """Copy a slot's record.

        Raises
        ------
        InvalidArgument
            The slot does not exist.
        SegmentError
            The record is empty, is being changed, or is not one.
        """
        words = self._slot(slot)
        request_id = int(words[regmap.SlotRecord.REQUEST // 4])
        copy = words.copy()
        if not request_id or int(words[regmap.SlotRecord.REQUEST // 4]) != request_id:
            raise SegmentError(f"Slot {slot} has no record; admit a request only after its record was written.")
        prompt, blocks = (int(copy[at // 4]) for at in (regmap.SlotRecord.PROMPT, regmap.SlotRecord.BLOCKS))
        biases = int(copy[regmap.SlotRecord.BIASES // 4])
        if prompt > self.shape.context or blocks > self.shape.blocks or biases > MAX_BIASES:
            raise SegmentError(f"The record of slot {slot} is longer than a record can be; it was overwritten.")
        table = regmap.SlotRecord.TABLE // 4
        tokens = table + self.shape.blocks
        seed = regmap.SlotRecord.SEED // 4
        flags = regmap.SlotRecordFlags.unpack(int(copy[regmap.SlotRecord.FLAGS // 4]))
        return SlotRecord(
            request_id=request_id,
            prompt=copy[tokens : tokens + prompt].view(np.int32),
            limit=int(copy[regmap.SlotRecord.LIMIT // 4]),
            block_table=copy[table : table + blocks].view(np.int32),
            temperature=float(copy.view(np.float32)[regmap.SlotRecord.TEMPERATURE // 4]),
            seed=int(copy[seed]) | int(copy[seed + 1]) << 32,
            ignore_eos=bool(flags.ignore_eos),
            masked=bool(flags.masked),
            filters=_read_filters(copy, biases),
            top_logprobs=int(copy[regmap.SlotRecord.TOP_LOGPROBS // 4]),
            produced=int(copy[regmap.SlotRecord.PRODUCED // 4]),
        )

    def holds(self, slot: int, request_id: int) -> bool:
        """Whether a slot's record is that of this request."""
        return int(self._slot(slot)[regmap.SlotRecord.REQUEST // 4]) == request_id

    def write_mask(self, slot: int, position: int, allowed: NDArray[np.uint32]) -> None:
        """Say which tokens a slot's request may have at `position`; to be called while its lane leaves it alone.

        That is before it is admitted, or between its latest token and its credit.

        Parameters
        ----------
        slot
            The request's slot.
        position
            Position of the token that is to be chosen, at least 1.
        allowed
            Token t is bit t mod 32 of word t / 32; shape (mask_words,).

        Raises
        ------
        InvalidArgument
            The slot does not exist, or the mask has another length than the segment's masks.
        """
        words = self._mask(slot)
        if len(allowed) != self.shape.mask_words:
            raise InvalidArgument(f"A mask has {self.shape.mask_words} words here, not {len(allowed)}.")
        words[regmap.Mask.POSITION // 4] = 0
        words[regmap.Mask.ALLOWED // 4 :][: len(allowed)] = allowed
        words[regmap.Mask.POSITION // 4] = position

    def mask(self, slot: int, position: int) -> NDArray[np.uint32]:
        """Copy what a slot's request may have at `position`, shape (mask_words,).

        Raises
        ------
        InvalidArgument
            The slot does not exist, or the segment has no masks.
        SegmentError
            The slot's mask is for another position, or is being changed.
        """
        words = self._mask(slot)
        at = regmap.Mask.POSITION // 4
        before = int(words[at])
        allowed = words[regmap.Mask.ALLOWED // 4 :][: self.shape.mask_words].copy()
        if not before == int(words[at]) == position:
            raise SegmentError(f"Slot {slot} has no mask for position {position}; credit a request after its mask.")
        return allowed

    def take_tokens(self, lane: int) -> list[LaneToken]:
        """Take the tokens a lane has posted since the last call, in order; at most a ring of them."""
        # As long as this is held, it stays mapped.
        _held = self._memory()
        port, out = self._base + self._port(lane), self._tokens[lane]
        count = self._native.cuelight_port_take(port, self.shape.tokens, self._taken[lane], out, self.shape.tokens)
        if not count:
            return []
        self._taken[lane] = self._taken[lane] + count & 0xFFFF_FFFF
        return list(map(LaneToken._make, _TOKEN.iter_unpack(memoryview(out)[: count * _TOKEN.size])))

    def set_stop(self, lane: int, stop: bool) -> None:
        """Ask a lane to stop, or take that back before one is started."""
        memory = self._memory()
        memory[(self._port(lane) + regmap.LanePort.STOP) // 4] = int(stop)
        self._native.cuelight_ring(self._base + self._port(lane) + regmap.LanePort.BELL)

    def lane_pid(self, lane: int) -> int:
        """Process id of a lane, 0 while none is at work."""
        return int(self._memory()[(self._port(lane) + regmap.LanePort.PID) // 4])

    def expected_sequence(self, lane: int) -> int:
        """Sequence of the oldest dispatch that the lane may still have to do."""
        return int(self._memory()[(self._port(lane) + regmap.LanePort.EXPECTED) // 4])

    def lane_heartbeat(self, lane: int) -> int:
        """A count that a live lane moves on at least twice a second while it waits."""
        return int(self._memory()[(self._port(lane) + regmap.LanePort.HEARTBEAT) // 4])

    def host_bell(self) -> int:
        """What the host bell reads now."""
        return int(self._memory()[regmap.Segment.HOST_BELL // 4])

    def ring_host(self) -> None:
        """Wake whoever waits for the host bell."""
        _held = self._memory()
        self._native.cuelight_ring(self._base + regmap.Segment.HOST_BELL)

    def wait_host(self, bell: int, timeout_s: float) -> int:
        """Sleep while the host bell reads `bell`, at most `timeout_s` seconds, or until a signal; return the bell."""
        _held = self._memory()
        at = self._base + regmap.Segment.HOST_BELL
        return int(self._native.cuelight_sleep(at, bell, max(0, int(timeout_s * 1e9))))

    def port_memory(self, lane: int) -> NDArray[np.uint32]:
        """A lane's port as words, shape (port_stride / 4,); a view that keeps the segment mapped."""
        start = self._port(lane)
        return self._memory()[start // 4 : (start + self.shape.port_stride) // 4]

    def header_memory(self) -> NDArray[np.uint32]:
        """The header as words, shape (1024,); a view that keeps the segment mapped."""
        return self._memory()[: _PAGE // 4]

    def _memory(self) -> NDArray[np.uint32]:
        if (words := self._words) is None:
            raise DeviceClosed("The shared segment is closed; open the device again.")
        return words

    def _port(self, lane: int) -> int:
        if not 0 <= lane < self.shape.lanes:
            raise InvalidArgument(f"Lane {lane} does not exist; the device has {self.shape.lanes}.")
        return self.shape.ports + lane * self.shape.port_stride

    def _slot(self, slot: int) -> NDArray[np.uint32]:
        if not 0 <= slot < self.shape.slots:
            raise InvalidArgument(f"Slot {slot} does not exist; the device has {self.shape.slots}.")
        start = (self.shape.records + slot * self.shape.record_stride) // 4
        return self._memory()[start : start + self.shape.record_stride // 4]

    def _mask(self, slot: int) -> NDArray[np.uint32]:
        if not self.shape.vocabulary:
            raise InvalidArgument("The device has no room for token masks; open it with the size of the vocabulary.")
        self._slot(slot)
        start = (self.shape.masks + slot * self.shape.mask_stride) // 4
        return self._memory()[start : start + self.shape.mask_stride // 4]


_FILTER_FLOATS = {
    "top_p": regmap.SlotRecord.TOP_P,
    "min_p": regmap.SlotRecord.MIN_P,
    "repetition_penalty": regmap.SlotRecord.REPETITION,
    "presence_penalty": regmap.SlotRecord.PRESENCE,
    "frequency_penalty": regmap.SlotRecord.FREQUENCY,
}


def _write_filters(words: NDArray[np.uint32], filters: Filters) -> None:
    floats = words.view(np.float32)
    for name, register in _FILTER_FLOATS.items():
        floats[register // 4] = getattr(filters, name)
    words[regmap.SlotRecord.TOP_K // 4] = filters.top_k
    words[regmap.SlotRecord.BIASES // 4] = len(filters.logit_bias)
    if filters.logit_bias:
        start, end = regmap.SlotRecord.BIAS // 4, regmap.SlotRecord.BIAS // 4 + 2 * len(filters.logit_bias)
        words[start:end:2], floats[start + 1 : end : 2] = zip(*filters.logit_bias, strict=True)


def _read_filters(words: NDArray[np.uint32], biases: int) -> Filters:
    floats = words.view(np.float32)
    start, end = regmap.SlotRecord.BIAS // 4, regmap.SlotRecord.BIAS // 4 + 2 * biases
    tokens, values = words[start:end:2].tolist(), floats[start + 1 : end : 2].tolist()
    return Filters(
        logit_bias=tuple(zip(tokens, values, strict=True)),
        top_k=int(words[regmap.SlotRecord.TOP_K // 4]),
        **{name: float(floats[register // 4]) for name, register in _FILTER_FLOATS.items()},
    )


def _header(shape: Shape) -> dict[int, int]:
    return {
        regmap.Segment.LAYOUT: _LAYOUT,
        regmap.Segment.LANES: shape.lanes,
        regmap.Segment.SLOTS: shape.slots,
        regmap.Segment.SEATS: shape.seats,
        regmap.Segment.TOKENS: shape.tokens,
        regmap.Segment.CONTEXT: shape.context,
        regmap.Segment.BLOCKS: shape.blocks,
        regmap.Segment.PORTS: shape.ports,
        regmap.Segment.PORT_STRIDE: shape.port_stride,
        regmap.Segment.RECORDS: shape.records,
        regmap.Segment.RECORD_STRIDE: shape.record_stride,
        regmap.Segment.VOCABULARY: shape.vocabulary,
        regmap.Segment.MASKS: shape.masks,
        regmap.Segment.MASK_STRIDE: shape.mask_stride,
    }


def _read_header(path: Path, descriptor: int) -> Shape:
    words = struct.unpack(f"<{_LINE // 4}I", os.pread(descriptor, _LINE, 0).ljust(_LINE, b"\0"))
    if words[regmap.Segment.MAGIC // 4] != _MAGIC:
        raise SegmentError(f"{path} is no segment of Cuelight; start the lane with the path of a running device.")
    if (layout := words[regmap.Segment.LAYOUT // 4]) != _LAYOUT:
        raise SegmentError(f"Segment {path} has layout {layout}, not {_LAYOUT}; use one version of Cuelight for both.")
    names = ("LANES", "SLOTS", "SEATS", "TOKENS", "CONTEXT", "BLOCKS", "VOCABULARY")
    try:
        shape = Shape(**{name.lower(): words[getattr(regmap.Segment, name) // 4] for name in names})
    except InvalidArgument as error:
        raise SegmentError(f"The header of segment {path} is damaged; open the device again.") from error
    if any(words[register // 4] != value for register, value in _header(shape).items()):
        raise SegmentError(f"The header of segment {path} is damaged; open the device again.")
    if (size := os.fstat(descriptor).st_size) < shape.size:
        raise SegmentError(f"Segment {path} has {size} bytes instead of {shape.size}; open the device again.")
    return shape


def _sweep() -> None:
    """Remove segments whose process died without closing them."""
    for path in _FOLDER.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(descriptor)


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
