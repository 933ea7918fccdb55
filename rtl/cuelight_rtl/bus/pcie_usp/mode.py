"""A lane's way between POLL and PUSH (docs/push.md)."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, ValueLike
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...regmap import FallCause, PushMode
from .answers import Answer

__all__ = ["TAGS", "LaneMode", "Settings"]

TAGS = 2
"""Of a lane: one may be in use while the other one rests."""


class Settings(data.Struct):
    """What the host has set for a lane; times in microseconds."""

    port_address: 64
    heartbeat_address: 64
    generation: 32
    completion_timeout: 32
    overdue: 32
    period: 32
    stall: 32
    rest: 32
    beats: 8


class LaneMode(wiring.Component):
    """Reads a lane's heartbeat, and falls back to POLL for every reason there is.

    ``tick`` comes once a microsecond. ``probe``, ``push`` and ``poll`` are commands; ``ready`` says that the first
    one would be taken, ``proven`` the second one. ``read`` asks for a heartbeat read with ``tag`` until it was
    ``sent``. ``look`` asks for the lane's oldest outstanding sequence, which comes as ``oldest`` with ``looked``.
    ``reoffer`` asks to offer what is outstanding again until ``reoffered``. The lane is ``busy`` as long as something
    of it is on its way to RQ, and ``leaving`` as long as the hard block has something of it that its completions
    could overtake.

    ``falls``, ``returns`` and ``late`` are strobes; ``late`` counts completions that nobody waits for.
    """

    def __init__(self, lane: int) -> None:
        self._lane = lane
        super().__init__(
            {
                "tick": In(1),
                "mastering": In(1),
                "settings": In(Settings),
                "probe": In(1),
                "push": In(1),
                "poll": In(1),
                "answer": In(Answer()),
                "sent": In(1),
                "looked": In(1),
                "oldest": In(32),
                "reoffered": In(1),
                "busy": In(1),
                "leaving": In(1),
                "ready": Out(1),
                "proven": Out(1),
                "mode": Out(PushMode),
                "cause": Out(4),
                "read": Out(1),
                "tag": Out(8),
                "reading": Out(1),
                "resting": Out(TAGS),
                "needed": Out(8),
                "heartbeat": Out(32),
                "look": Out(1),
                "reoffer": Out(1),
                "falls": Out(1),
                "returns": Out(1),
                "late": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        settings, answer, mode = self.settings, self.answer, self.mode
        pushing, falling = mode == PushMode.PUSH, mode == PushMode.FALLING
        active = pushing | (mode == PushMode.PROBING)
        fell_at = Signal(32)
        m.d.comb += [
            self.ready.eq((mode == PushMode.POLL) & (settings.generation != fell_at) & self.mastering),
            self.proven.eq((mode == PushMode.PROBING) & (self.needed == 0)),
        ]

        away = Signal()
        which = Signal()
        ours, mine, good = (Signal(name=name) for name in ("ours", "mine", "good"))
        m.d.comb += [
            mine.eq(answer.valid & (answer.tag[1:] == self._lane)),
            ours.eq(mine & away & (answer.tag[0] == which)),
            good.eq(ours & (answer.cause == 0)),
            self.late.eq(mine & ~ours),
            self.tag.eq(Cat(which, Const(self._lane, 7))),
            self.read.eq(self.reading & ~away),
        ]

        # The heartbeat: when it was read last, and whether it moves.
        timer, still_for = (Signal(32, name=name) for name in ("timer", "still_for"))
        known = Signal()
        moves = known & (answer.value != self.heartbeat)
        free = ~self.resting
        with m.If(self.tick):
            m.d.sync += [timer.eq(timer + 1), still_for.eq(still_for + 1)]
        with m.If(active & ~self.reading & (timer >= settings.period) & free.any()):
            m.d.sync += [self.reading.eq(1), which.eq(~free[0]), timer.eq(0)]
        with m.If(self.read & self.sent):
            m.d.sync += away.eq(1)
        with m.If(good):
            m.d.sync += [self.heartbeat.eq(answer.value), known.eq(1), self.reading.eq(0), away.eq(0), timer.eq(0)]
            with m.If(moves | ~known):
                m.d.sync += still_for.eq(0)

        # The oldest dispatch: how long it has been that.
        oldest, oldest_for = (Signal(32, name=name) for name in ("oldest", "oldest_for"))
        same = (self.oldest == oldest) & (oldest != 0)
        with m.If(self.tick):
            m.d.sync += oldest_for.eq(oldest_for + 1)
        with m.If(self.looked):
            m.d.sync += [self.look.eq(0), oldest.eq(self.oldest)]
            with m.If(~same):
                m.d.sync += oldest_for.eq(0)
        with m.If(good & pushing):
            m.d.sync += self.look.eq(1)

        with m.If(good & moves & (mode == PushMode.PROBING) & ~self.proven):
            m.d.sync += self.needed.eq(self.needed - 1)
        with m.If(self.push & self.proven):
            m.d.comb += self.returns.eq(~self.falls)
            m.d.sync += [mode.eq(PushMode.PUSH), oldest.eq(0)]

        def reached(time: Value, most: Value) -> Value:
            return (most != 0) & (time >= most)

        # Of several reasons the first one counts.
        reasons: list[tuple[FallCause | Value, ValueLike]] = [
            (FallCause.COMMAND, self.poll),
            (FallCause.NO_MASTERING, ~self.mastering),
            (answer.cause, ours & ~good),
            (FallCause.TIMEOUT, self.reading & ~ours & (timer >= settings.completion_timeout)),
            (FallCause.STOPPED, good & known & ~moves & reached(still_for, settings.stall)),
            (FallCause.OVERDUE, pushing & self.looked & same & reached(oldest_for, settings.overdue)),
        ]
        reason: Value = Const(0, 4)
        for each, holds in reversed(reasons):
            reason = Mux(holds, each, reason)
        m.d.comb += self.falls.eq(active & Cat(holds for _, holds in reasons).any())
        with m.If(self.falls):
            m.d.sync += [
                mode.eq(PushMode.FALLING),
                self.cause.eq(reason),
                self.reoffer.eq(pushing),
                self.look.eq(0),
                fell_at.eq(settings.generation),
                *(self.reading.eq(0), away.eq(0), timer.eq(0)),
            ]
        with m.Elif(falling & ~self.reoffer & ~self.busy & (~self.leaving | (timer >= settings.rest))):
            m.d.sync += mode.eq(PushMode.POLL)
        with m.Elif(self.probe & self.ready):
            m.d.sync += [mode.eq(PushMode.PROBING), self.needed.eq(settings.beats)]
            m.d.sync += [known.eq(0), timer.eq(settings.period)]
        with m.If(falling & self.busy):
            m.d.sync += timer.eq(0)
        with m.If(self.reoffered):
            m.d.sync += self.reoffer.eq(0)

        self._rest(m, spoils=self.falls & self.reading & ~good, which=which)
        return m

    def _rest(self, m: Module, *, spoils: Value, which: Signal) -> None:
        """Tags whose read did not end well: something may still come back for them."""
        for tag in range(TAGS):
            left = Signal(32, name=f"rest_{tag}")
            m.d.comb += self.resting[tag].eq(left != 0)
            with m.If(spoils & (which == tag)):
                m.d.sync += left.eq(self.settings.rest)
            with m.Elif(self.tick & (left != 0)):
                m.d.sync += left.eq(left - 1)
