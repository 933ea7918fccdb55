"""Snapshots of a board: what a device would show whose lanes were pushed to."""

from __future__ import annotations

from dataclasses import replace

from cuelight.regmap import FallCause, PushMode
from cuelight.snapshot import Snapshot
from cuelight.status import Delivery

__all__ = ["fallen"]

_LANES = (
    Delivery(
        mode=PushMode.PUSH,
        cause=FallCause.OVERDUE,
        falls={FallCause.TIMEOUT: 2, FallCause.OVERDUE: 11},
        returns=14,
        pushed=123_456,
        late=3,
    ),
    Delivery(mode=PushMode.PROBING, cause=None, falls={}, returns=0, pushed=0, late=0),
)


def fallen(snapshot: Snapshot) -> Snapshot:
    """The same device, but that lane 0 has fallen and is in PUSH again, and lane 1 is being probed."""
    status = snapshot.status
    lanes = tuple(replace(lane, delivery=delivery) for lane, delivery in zip(status.lanes, _LANES, strict=True))
    return replace(snapshot, status=replace(status, lanes=lanes))
