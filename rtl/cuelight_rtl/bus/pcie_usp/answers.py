"""RC: what came back for a heartbeat read."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...regmap import FallCause
from .streams import RC, CompletionStatus, RcDescriptor, RcError

__all__ = ["Answer", "Answers"]

_HEADER = 3
"""Dwords before the payload."""


class Answer(wiring.Signature):
    """How the read with a tag ended: what is wrong, or ``cause`` 0 and the dword that was read."""

    def __init__(self) -> None:
        super().__init__({"valid": Out(1), "tag": Out(8), "cause": Out(4), "value": Out(32)})


class Answers(wiring.Component):
    """Reduces packets of RC to answers, a cycle later; it never keeps the hard block waiting.

    A packet that the hard block takes back says nothing, not even about its tag: the read's own timer ends it.
    """

    def __init__(self) -> None:
        super().__init__({"rc": In(RC), "answer": Out(Answer())})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        beat, answer = self.rc.payload, self.answer
        inside = Signal()
        now, kept = Signal(32 * (_HEADER + 1)), Signal(32 * (_HEADER + 1))
        descriptor = RcDescriptor(now[: 32 * _HEADER])
        m.d.comb += [self.rc.ready.eq(1), now.eq(Mux(inside, kept, beat.data[: len(now)]))]
        with m.If(self.rc.valid):
            m.d.sync += [inside.eq(~beat.last), kept.eq(now)]

        whole = (descriptor.count == 1) & descriptor.completed & ~inside
        m.d.sync += [
            answer.valid.eq(self.rc.valid & beat.last & ~beat.user.discontinue),
            answer.tag.eq(descriptor.tag),
            answer.value.eq(now[32 * _HEADER :]),
        ]
        with m.If(descriptor.error == RcError.TIMEOUT):
            m.d.sync += answer.cause.eq(FallCause.TIMEOUT)
        with m.Elif((descriptor.error == RcError.POISONED) | descriptor.poisoned):
            m.d.sync += answer.cause.eq(FallCause.POISONED)
        with m.Elif(descriptor.status == CompletionStatus.COMPLETER_ABORT):
            m.d.sync += answer.cause.eq(FallCause.ABORTED)
        with m.Elif((descriptor.error == RcError.BAD_STATUS) | (descriptor.status != CompletionStatus.SUCCESSFUL)):
            m.d.sync += answer.cause.eq(FallCause.UNSUPPORTED)
        with m.Else():
            m.d.sync += answer.cause.eq(Mux((descriptor.error == RcError.NONE) & whole, 0, FallCause.MALFORMED))
        return m
