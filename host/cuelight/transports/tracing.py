"""Events of the trace as the device holds them."""

from __future__ import annotations

__all__ = ["RawEvent", "decode_event"]

RawEvent = tuple[int, int, int, int, int, int]
"""Time in ns, kind, lane, stage, id, detail."""


def decode_event(head: int, payload: int) -> RawEvent:
    """Take TRACE_HEAD and TRACE_PAYLOAD apart."""
    return (
        head & 0xFFFF_FFFF_FFFF,
        head >> 48 & 0x1F,
        head >> 53 & 0x7,
        head >> 56,
        payload & 0xFFFF_FFFF,
        payload >> 32,
    )
