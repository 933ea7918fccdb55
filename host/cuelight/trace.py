"""The device's event trace, decoded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from cuelight.regmap import CommitKind

__all__ = ["Event"]

_TIME_BITS = 48

# Names of the parts of `stage` and `detail`, as (name, lowest bit, width); where a kind is missing they are 0.
_STAGE: dict[CommitKind, tuple[tuple[str, int, int], ...]] = {
    CommitKind.ADMIT: (("page", 0, 3), ("automatic", 3, 1), ("tier", 4, 2)),
    CommitKind.RETARGET: (("target", 0, 8),),
    CommitKind.CANCEL: (("effect", 0, 8),),
    CommitKind.REJECT: (("reason", 0, 8),),
    CommitKind.SEAT: (("seat", 0, 8),),
    CommitKind.RETIRE: (("reason", 0, 8),),
    CommitKind.ADVANCE: (("seat", 0, 8),),
    CommitKind.LOOP_POINT: (("pass", 0, 8),),
    CommitKind.PLAN: (("pass", 0, 8),),
    CommitKind.CHUNK: (("seat", 0, 8),),
    CommitKind.FORM: (("entries", 0, 8),),
    CommitKind.DISPATCH: (("stage", 0, 8),),
    CommitKind.COMPLETE: (("stage", 0, 8),),
    CommitKind.PARK: (("effect", 0, 8),),
    CommitKind.CREDIT: (("effect", 0, 8),),
    CommitKind.PARKED: (("seat", 0, 8),),
    CommitKind.PAUSE: (("seat", 0, 8),),
}
_DETAIL: dict[CommitKind, tuple[tuple[str, int, int], ...]] = {
    CommitKind.ADMIT: (("kv_blocks", 0, 32),),
    CommitKind.RETARGET: (("page", 0, 8),),
    CommitKind.CANCEL: (("page", 0, 8),),
    CommitKind.REJECT: (("page", 0, 8), ("target", 8, 24)),
    CommitKind.SEAT: (("tier", 0, 2), ("decodes", 8, 1)),
    CommitKind.RETIRE: (("seat", 0, 8), ("unseated", 8, 1)),
    CommitKind.FREE: (("index", 0, 32),),
    CommitKind.ADVANCE: (("start", 0, 20), ("decodes", 31, 1)),
    CommitKind.PLAN: (("decode_rows", 0, 16), ("lanes", 16, 4)),
    CommitKind.CHUNK: (("start", 0, 20), ("rows", 20, 10), ("last", 30, 1), ("first", 31, 1)),
    CommitKind.FORM: (("rows", 0, 32),),
    CommitKind.DISPATCH: (
        ("rows", 0, 10),
        ("pass", 10, 3),
        ("group", 13, 3),
        ("decision_cycles", 16, 12),
        ("first", 28, 1),
        ("last", 29, 1),
        ("samples", 30, 1),
    ),
    CommitKind.PARK: (("page", 0, 8),),
    CommitKind.CREDIT: (("page", 0, 8),),
    CommitKind.PARKED: (("credited", 0, 1),),
    CommitKind.PAUSE: (("tier", 0, 2), ("parked", 8, 1)),
}


@dataclass(frozen=True, slots=True)
class Event:
    """One step of the device, as its commit port showed it."""

    time_ns: int
    """The device's clock, `Status.time_ns`."""
    kind: CommitKind
    """What happened; `cuelight.regmap.CommitKind` documents each kind's fields."""
    lane: int
    """Lane, or lane group."""
    id: int
    """Request id; pass number or sequence where the kind says so."""
    stage: int
    """As recorded; `fields` has its meaning."""
    detail: int
    """As recorded; `fields` has its meaning."""

    @classmethod
    def decode(cls, time_ns: int, kind: int, lane: int, stage: int, id: int, detail: int, *, now_ns: int) -> Self:
        """Decode one entry of the trace FIFO.

        Parameters
        ----------
        time_ns : int
            The event's time, of which the FIFO holds the low 48 bits.
        kind, lane, stage, id, detail : int
            As in TRACE_HEAD and TRACE_PAYLOAD.
        now_ns : int
            TIME_NS, read within 39 hours of the event.
        """
        half = 1 << _TIME_BITS - 1
        age_ns = (now_ns - time_ns + half) % (1 << _TIME_BITS) - half
        return cls(now_ns - age_ns, CommitKind(kind), lane, id, stage, detail)

    @property
    def fields(self) -> dict[str, int]:
        """Parts of `stage` and `detail` by name."""
        parts = [(part, self.stage) for part in _STAGE.get(self.kind, ())]
        parts += [(part, self.detail) for part in _DETAIL.get(self.kind, ())]
        return {name: value >> low & ((1 << width) - 1) for (name, low, width), value in parts}

    def to_dict(self) -> dict[str, Any]:
        """Make it JSON-ready."""
        return {"time_ns": self.time_ns, "kind": self.kind.name, "lane": self.lane, "id": self.id, **self.fields}
