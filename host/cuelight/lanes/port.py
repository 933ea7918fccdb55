"""A lane's side of its port: dispatches in, tokens and completions out."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cuelight import regmap
from cuelight.errors import DeviceClosed, InvalidArgument, SegmentError, Timeout
from cuelight.lanes.types import Dispatch, Entry, LaneToken, PassRecord, SlotRecord
from cuelight.native.lane_port import lane_port_library
from cuelight.segment import Segment

__all__ = ["LanePort"]

_TOKEN = struct.Struct("<IIIfI")
_FINISHED = struct.Struct(f"<{regmap.Completion.FINISHED_COUNT}I")
_UNIT_WORDS = regmap.Record.BITMAP_STRIDE // 4
_SEATS_PER_UNIT = 32 * regmap.BitmapUnit.WORD_COUNT
_HEARTBEAT_S = 0.5
_STOP = 2


class LanePort:
    """A lane's place in a device's shared segment, for one thread of the process that is the lane.

    Dispatches come strictly in the order of their sequences. A lane that attaches anew gets the oldest one that was
    not reported complete, so effects must not depend on how often a dispatch is run.

    Parameters
    ----------
    segment_path
        Path of the device's segment.
    lane
        Number of the lane.

    Raises
    ------
    SegmentError
        There is no segment of this version at `segment_path`.
    InvalidArgument
        The device does not have this lane.
    """

    def __init__(self, segment_path: str | Path, lane: int) -> None:
        self.lane = lane
        self._segment = Segment.open(segment_path)
        self._native = lane_port_library()
        try:
            self._memory = self._segment.port_memory(lane)
        except InvalidArgument:
            self._segment.close()
            raise
        self._header = self._segment.header_memory()
        self._port = self._memory.ctypes.data
        self._device_bell = self._header.ctypes.data + regmap.Segment.DEVICE_BELL
        self._host_bell = self._header.ctypes.data + regmap.Segment.HOST_BELL
        self._shape = self._segment.shape
        self._sequence = ctypes.c_uint32(self._first_sequence())
        self._posted = self._native.cuelight_port_posted(self._port, self._shape.tokens)
        self._units = -(-self._shape.seats // _SEATS_PER_UNIT)
        self._stamps = (ctypes.c_uint32 * regmap.LanePort.RECORD_COUNT)()
        self._raw_dispatch = (ctypes.c_uint64 * 2)()
        self._raw_record = (ctypes.c_uint32 * (regmap.Record.SIZE // 4))()
        self._memory[regmap.LanePort.PID // 4] = os.getpid()

    @property
    def stop_requested(self) -> bool:
        """Whether the host asks the lane to end."""
        return bool(self._memory[regmap.LanePort.STOP // 4])

    @property
    def seats(self) -> int:
        """Seats of the lane's group."""
        return self._shape.seats

    def wait(self, timeout_s: float) -> Dispatch | None:
        """Wait for the next dispatch, and for its record: a dispatch without that is as good as none.

        Returns
        -------
        Dispatch or None
            None when `timeout_s` seconds are over, or as soon as the host asks the lane to end.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            left_s = max(0.0, deadline - time.monotonic())
            sliced_ns = int(min(left_s, _HEARTBEAT_S) * 1e9)
            found = self._native.cuelight_port_wait(
                self._port, self._sequence, sliced_ns, self._units, self._stamps, self._raw_dispatch
            )
            if found == _STOP or not (found or left_s):
                return None
            if found:
                self._sequence.value = next_sequence(self._sequence.value)
                return self._dispatch()

    def record(self, dispatch: Dispatch) -> PassRecord:
        """Copy the record of the dispatch's pass.

        Raises
        ------
        SegmentError
            Some unit of it is not of this pass: the device has moved on.
        """
        units, low = self._units, self._stamps[dispatch.buffer]
        entries = min(dispatch.entries, regmap.Record.ENTRY_COUNT)
        if not self._native.cuelight_port_record(self._port, dispatch.buffer, low, units, entries, self._raw_record):
            raise SegmentError(
                f"The record of pass {dispatch.pass_number} is not whole; drop the dispatch and wait for the next one."
            )
        words = self._raw_record[: _UNIT_WORDS * (units + entries)]
        decode = tuple(
            _SEATS_PER_UNIT * unit + 32 * word + bit
            for unit in range(units)
            for word, seats in enumerate(words[_UNIT_WORDS * unit : _UNIT_WORDS * unit + regmap.BitmapUnit.WORD_COUNT])
            for bit in _bits(seats)
        )
        raw_entries = (words[_UNIT_WORDS * at : _UNIT_WORDS * (at + 1)] for at in range(units, units + entries))
        return PassRecord(decode, tuple(_entry(*raw) for raw in raw_entries))

    def slot_record(self, slot: int) -> SlotRecord:
        """Copy a slot's record.

        Raises
        ------
        InvalidArgument
            The slot does not exist.
        SegmentError
            The record is empty or is being changed.
        """
        return self._segment.slot_record(slot)

    def mask(self, slot: int, position: int) -> NDArray[np.uint32]:
        """Copy what a slot's request may have at `position`: token t is bit t mod 32 of word t / 32.

        Raises
        ------
        InvalidArgument
            The slot does not exist, or the segment has no masks.
        SegmentError
            The slot's mask is for another position, or is being changed.
        """
        return self._segment.mask(slot, position)

    def post_token(
        self, request_id: int, position: int, token: int, logprob: float, finish: int, timeout_s: float = 30.0
    ) -> None:
        """Hand one token to the host; all else as in `post_tokens`."""
        self.post_tokens((LaneToken(request_id, position, token, logprob, finish),), timeout_s)

    def post_tokens(self, tokens: Iterable[LaneToken], timeout_s: float = 30.0) -> None:
        """Hand tokens to the host, which is woken once; to be called before the completion of what made them.

        Raises
        ------
        Timeout
            The ring stayed full for `timeout_s` seconds.
        DeviceClosed
            The host asked the lane to end while the ring was full.
        """
        raw = b"".join([_TOKEN.pack(one[0], one[1], one[2] & 0xFFFF_FFFF, one[3], one[4]) for one in tokens])
        deadline = time.monotonic() + timeout_s
        while raw:
            left_s = max(0.0, deadline - time.monotonic())
            sliced_ns = int(min(left_s, _HEARTBEAT_S) * 1e9)
            count = len(raw) // _TOKEN.size
            posted = self._native.cuelight_port_post(
                self._port, self._host_bell, self._shape.tokens, self._posted, raw, count, sliced_ns
            )
            self._posted = self._posted + posted & 0xFFFF_FFFF
            raw = raw[posted * _TOKEN.size :]
            if posted:
                continue
            if self.stop_requested:
                raise DeviceClosed(f"Lane {self.lane} was asked to end before the host took its tokens.")
            if not left_s:
                raise Timeout(f"The host took no token of lane {self.lane} for {timeout_s:g} s; start the lane again.")

    def complete(self, sequence: int, finished_seats: Iterable[int] = ()) -> None:
        """Report a dispatch as done, with the seats whose request has ended.

        Raises
        ------
        InvalidArgument
            A seat the group does not have.
        """
        bitmap = 0
        for seat in finished_seats:
            if not 0 <= seat < self._shape.seats:
                raise InvalidArgument(f"Seat {seat} does not exist; the group has {self._shape.seats}.")
            bitmap |= 1 << seat
        words = _FINISHED.pack(
            *((bitmap >> 32 * word) & 0xFFFF_FFFF for word in range(regmap.Completion.FINISHED_COUNT))
        )
        self._native.cuelight_port_complete(self._port, self._device_bell, sequence, words)

    def close(self) -> None:
        """Give the port back; a second call does nothing."""
        with contextlib.suppress(DeviceClosed):
            if self._segment.lane_pid(self.lane) == os.getpid():
                self._memory[regmap.LanePort.PID // 4] = 0
        self._segment.close()

    def __enter__(self) -> LanePort:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _first_sequence(self) -> int:
        expected = int(self._memory[regmap.LanePort.EXPECTED // 4])
        # The device may not have taken in yet what an earlier lane reported last.
        while expected and self._reported(expected):
            expected = next_sequence(expected)
        return expected

    def _reported(self, sequence: int) -> bool:
        done = regmap.LanePort.DONE + sequence % regmap.LanePort.DONE_COUNT * regmap.LanePort.DONE_STRIDE
        return int(self._memory[(done + regmap.Completion.BATCH_DONE) // 4]) == sequence

    def _dispatch(self) -> Dispatch:
        head = regmap.DispatchHead.unpack(self._raw_dispatch[0])
        tail = regmap.DispatchPass.unpack(self._raw_dispatch[1])
        return Dispatch(
            sequence=head.sequence,
            stage=head.stage,
            buffer=head.buffer,
            first=bool(head.first),
            last=bool(head.last),
            samples=bool(head.samples),
            rows=head.rows,
            pass_number=tail.pass_number,
            entries=tail.entries,
        )


def next_sequence(sequence: int) -> int:
    """Sequence after this one: low halves 0 and 0xFFFF are skipped (docs/device.md §7)."""
    following = sequence + 1 & 0xFFFF_FFFF
    return following + 2 & 0xFFFF_FFFF if following & 0xFFFF == 0xFFFF else following


def _bits(word: int) -> Iterable[int]:
    while word:
        yield (word & -word).bit_length() - 1
        word &= word - 1


def _entry(request_id: int, chunk: int, rows: int, _stamp: int) -> Entry:
    fields = regmap.EntryChunk.unpack(chunk)
    return Entry(
        request_id=request_id,
        slot=request_id & 0xFFFF,
        seat=fields.seat,
        start=fields.start,
        rows=rows & 0xFFFF,
        bind=bool(fields.bind),
        first=bool(fields.first),
        last=bool(fields.last),
    )
