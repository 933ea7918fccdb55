"""A lane without a model: it says the same text to everybody, each token at once; a process as the CPU lane is one."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from cuelight.engine.tokenizer import Tokenizer
from cuelight.lanes.port import LanePort
from cuelight.lanes.process import LaneProcess
from cuelight.lanes.types import LaneToken, PassRecord, TokenStatus

__all__ = ["STAGES", "SayingLane", "saying"]

STAGES = 4
"""Prefill, kv-init, one layer stage, output decode."""
_WORDS = "Stand by, lights forty-two; stand by, sound cue nine. Lights forty-two: go. Sound: go. Thank you, all. "


class SayingLane(LaneProcess):
    """Such a process."""

    program = (str(Path(__file__).resolve()),)


def saying(tokenizer: Tokenizer, count: int) -> list[int]:
    """The first tokens that it says."""
    return list(itertools.islice(itertools.cycle(tokenizer.encode(_WORDS)), count))


@dataclass
class _Seat:
    request_id: int
    begin: int
    """Position of its first new token."""
    end: int
    next: int


class _Lane:
    def __init__(self, port: LanePort, words: list[int]) -> None:
        self._port = port
        self._words = words
        self._seats: dict[int, _Seat] = {}

    def serve(self) -> None:
        """Go on until asked to end."""
        records: dict[int, PassRecord] = {}
        port = self._port
        while not port.stop_requested:
            dispatch = port.wait(0.1)
            if dispatch is None:
                continue
            if dispatch.first:
                record = records[dispatch.buffer] = port.record(dispatch)
                for entry in record.entries:
                    if entry.bind:
                        slot = port.slot_record(entry.slot)
                        begin = len(slot.prompt)
                        self._seats[entry.seat] = _Seat(slot.request_id, begin, begin + slot.limit, begin)
            finished = self._sample(records[dispatch.buffer]) if dispatch.stage == STAGES - 1 else []
            port.complete(dispatch.sequence, finished)

    def _sample(self, record: PassRecord) -> list[int]:
        tokens, finished = [], []
        for number in (*record.decode, *[entry.seat for entry in record.entries if entry.last]):
            seat = self._seats[number]
            token = self._words[(seat.next - seat.begin) % len(self._words)]
            over = seat.next + 1 == seat.end
            status = TokenStatus.LENGTH if over else TokenStatus.MORE
            tokens.append(LaneToken(seat.request_id, seat.next, token, -0.25, status))
            seat.next += 1
            if over:
                finished.append(number)
        self._port.post_tokens(tokens)
        return finished


def main() -> int:
    """Be one, as `LaneProcess` has it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path)
    options, _ = parser.parse_known_args()
    words = Tokenizer(options.model).encode(_WORDS)
    if not (place := sys.stdin.readline()):
        return 0
    where = json.loads(place)
    with LanePort(where["segment"], where["lane"]) as port:
        print(json.dumps({"ready": True}), flush=True)
        _Lane(port, words).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
