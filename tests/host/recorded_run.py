"""A run of two requests on one lane as the device traces it, for tests of what is made of traces.

Stages: 0 prefill, 1 kv-init, 2 and 3 layers, 4 decode. The first request's prompt takes passes 1 and 2; the second
joins in pass 3, in which the first decodes; both decode in pass 4, after which the first has finished.
"""

from __future__ import annotations

from cuelight.recording import Recording
from cuelight.regmap import CommitKind as Kind
from cuelight.trace import Event

FIRST, SECOND = 0x0001_0000, 0x0001_0001
START_NS = 1_000_000_000
STAGE_NS = 1_000_000
STAGE_COUNT = 5


def record_run() -> Recording:
    """Return it; each stage takes `STAGE_NS`, everything else no time."""
    run = _Run()
    run.admit_and_seat(FIRST, seat=0)
    run.form(1, decode_rows=0, chunks=[(FIRST, 0, 0, 256, False)])
    run.walk(1, 2, 3, rows=256)
    run.advance(1, (FIRST, 0, 256, False))
    run.form(2, decode_rows=0, chunks=[(FIRST, 0, 256, 8, True)])
    run.admit_and_seat(SECOND, seat=1)
    run.walk(2, 3, 4, rows=8)
    run.advance(2, (FIRST, 0, 264, True))
    run.form(3, decode_rows=1, chunks=[(SECOND, 1, 0, 12, True)])
    run.walk(1, 2, 3, 4, rows=13)
    run.advance(3, (SECOND, 1, 12, True))
    run.form(4, decode_rows=2, chunks=[])
    run.walk(2, 3, 4, rows=2)
    run.add(Kind.LOOP_POINT, id=4)
    run.add(Kind.RETIRE, stage=1, id=FIRST, detail=0)
    return Recording(tuple(run.events), STAGE_COUNT, {FIRST: "the first"})


class _Run:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self._now_ns = START_NS
        self._sequence = 1

    def add(self, kind: Kind, stage: int = 0, id: int = 0, detail: int = 0) -> None:
        self.events.append(Event(self._now_ns, kind, 0, id, stage, detail))

    def admit_and_seat(self, request: int, seat: int) -> None:
        self.add(Kind.ADMIT, stage=1 << 3 | 2 << 4, id=request, detail=3)
        self.add(Kind.SEAT, stage=seat, id=request, detail=2)

    def form(self, number: int, decode_rows: int, chunks: list[tuple[int, int, int, int, bool]]) -> None:
        self.add(Kind.PLAN, id=number, detail=decode_rows | 1 << 16)
        for request, seat, start, rows, last in chunks:
            detail = start | rows << 20 | last << 30 | (start == 0) << 31
            self.add(Kind.CHUNK, stage=seat, id=request, detail=detail)
        self.add(Kind.FORM, stage=len(chunks), id=number, detail=decode_rows + sum(chunk[3] for chunk in chunks))

    def walk(self, *stages: int, rows: int) -> None:
        for stage in stages:
            self.add(Kind.DISPATCH, stage=stage, id=self._sequence, detail=rows | 7 << 16)
            self._now_ns += STAGE_NS
            self.add(Kind.COMPLETE, stage=stage, id=self._sequence)
            self._sequence += 1

    def advance(self, number: int, *entries: tuple[int, int, int, bool]) -> None:
        self.add(Kind.LOOP_POINT, id=number)
        for request, seat, start, decodes in entries:
            self.add(Kind.ADVANCE, stage=seat, id=request, detail=start | decodes << 31)
