"""Commits go to the trace in their order, and none is lost silently; rejects likewise."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Signal, Value
from amaranth.utils import ceil_log2

from cuelight_rtl.regmap import CommitKind
from cuelight_rtl.trace import Rejects, Trace

from .spec import Spec

__all__ = ["refusals", "tickets"]

# docs/device.md §8 names these as left out.
_LEFT_OUT = [
    kind
    for kind in CommitKind
    if kind.name in ("OFFER", "UNOFFER", "TAKEN", "REOFFERED")
    or kind.name.startswith("CONFIG")
    or kind.name.endswith("_IGNORED")
]


def tickets(holds: list[int]) -> Spec:
    """One commit, whichever, is followed from the cycle of its step until it goes to the queue."""
    room = Trace(holds)
    spec = Spec(room)
    m = spec.m
    places = [(source, place) for source, count in enumerate(holds) for place in range(count)]
    names = [f"{source}_{place}" for source, place in places]
    busy = [spec.inside(f"held_{name}") for name in names]
    ticket = [spec.inside(f"ticket_{name}") for name in names]
    content = [Cat(spec.inside(f"head_{name}"), spec.inside(f"payload_{name}")) for name in names]
    give, serve, leaving = spec.inside("give"), spec.inside("serve"), spec.inside("leaving")
    queued = Cat(spec.inside("heads.w_data"), spec.inside("payloads.w_data"))
    room_left = spec.inside("heads.w_rdy")

    def count(bits: list[Value]) -> Signal:
        total = Signal(ceil_log2(len(bits) + 2))
        m.d.comb += total.eq(sum(bits))
        return total

    comes = [step.valid & ~Cat(step.kind == kind for kind in _LEFT_OUT).any() for step in room.steps]
    waiting = count(busy)
    after_leaving = [
        count([busy[i] & ~(ticket[i] == serve) for i, (of, _) in enumerate(places) if of == source])
        for source in range(len(holds))
    ]
    taken = [comes[source] & (after_leaving[source] < holds[source]) for source in range(len(holds))]
    lost = [comes[source] & ~taken[source] for source in range(len(holds))]

    spec.claim(
        "A commit is lost only where its source holds as many as it can, or the queue is full, and each is counted.",
        room.lost == sum(lost, start=leaving & ~room_left),
    )
    spec.claim(
        "What is not lost waits until it leaves.",
        waiting == spec.past(waiting - leaving + sum(taken))[: len(waiting)],
    )
    spec.claim("While commits wait, one leaves in each cycle.", leaving, when=waiting != 0)
    spec.claim("Nothing leaves that does not wait.", ~leaving, when=waiting == 0)
    spec.claim("Idle means that none waits.", room.idle == (waiting == 0))

    source, pick = spec.some("source", ceil_log2(len(holds))), spec.any("pick", 1)
    spec.assume(source < len(holds))
    followed, ahead, kept = Signal(), Signal(len(waiting)), Signal(len(content[0]))
    shown = Array(
        Cat(room.time_ns[:48], step.kind, step.lane, step.stage, step.id, step.detail) for step in room.steps
    )[source]
    before_it = sum(taken[other] & (source > other) for other in range(len(holds)))
    with m.If(~followed & pick & Array(taken)[source]):
        m.d.sync += [followed.eq(1), ahead.eq(waiting - leaving + before_it), kept.eq(shown)]
    with m.Elif(followed & leaving):
        m.d.sync += [ahead.eq(ahead - 1), followed.eq(ahead != 0)]
    spec.claim(
        "A commit leaves as it came, after those of earlier cycles and of earlier sources in its cycle, and no others.",
        queued == kept,
        when=followed & (ahead == 0) & leaving,
    )
    spec.claim("It leaves in its turn.", leaving, when=followed & (ahead == 0))

    turn = [(ticket[i] - serve)[: len(serve)] for i in range(len(places))]
    spec.lemma("Tickets are given out in order.", give == (serve + waiting)[: len(give)])
    spec.lemma(
        "No ticket is out twice.",
        Cat(~(busy[i] & busy[j] & (ticket[i] == ticket[j])) for i in range(len(places)) for j in range(i)).all(),
    )
    spec.lemma(
        "Tickets that are out are those from the next to be served to the last given.",
        Cat(~busy[i] | (turn[i] < waiting) for i in range(len(places))).all()
        & Cat(
            (waiting <= n) | Cat(busy[i] & (turn[i] == n) for i in range(len(places))).any() for n in range(len(places))
        ).all(),
    )
    spec.lemma(
        "The followed commit waits with its turn.",
        (ahead < waiting) & Cat(busy[i] & (turn[i] == ahead) & (content[i] == kept) for i in range(len(places))).any(),
        when=followed,
    )
    _pops(spec, room.state.index, room.pop, room.pop_index, room.stale, spec.inside("heads.r_rdy"), room.take)
    spec.lemma(
        "Heads and payloads stay side by side.",
        Cat(
            spec.inside(f"heads.{name}") == spec.inside(f"payloads.{name}")
            for name in ("produce", "consume", "inner_level", "r_rdy")
        ).all(),
    )
    spec.reach("Every place is taken.", waiting == len(places))
    return spec


def refusals() -> Spec:
    """The reject FIFO, but for its library part."""
    room = Rejects()
    spec = Spec(room)
    step = room.step
    refused = step.valid & (step.kind == CommitKind.REJECT)
    space, entry = spec.inside("queue.w_rdy"), spec.inside("queue.w_data")
    enters = spec.inside("queue.w_en")
    spec.claim(
        "A refusal joins the FIFO, or is counted as lost where it is full.",
        enters & (room.lost == ~space),
        when=refused,
    )
    spec.claim("Nothing else joins it.", ~enters & ~room.lost, when=~refused)
    spec.claim("It keeps id, reason and page.", entry == Cat(step.id, step.stage[:4], step.detail[:3]), when=refused)
    spec.claim("An empty FIFO reads zero.", Value.cast(room.head) == 0, when=~room.head.valid)
    spec.claim("The head shows its index.", room.head.index == spec.inside("index")[:16], when=room.head.valid)
    _pops(spec, spec.inside("index"), room.pop, room.pop_index, room.stale, spec.inside("queue.r_rdy"), Const(0))
    return spec


def _pops(spec: Spec, index: Value, pop: Value, pop_index: Value, stale: Value, valid: Value, take: Value) -> None:
    """A pop takes the head off if it names it, and does nothing else."""
    names_head = valid & (pop_index == index)
    spec.claim(
        "A pop that names the head takes it off.",
        index == (spec.past(index) + 1)[:32],
        when=spec.past(pop & names_head),
    )
    spec.claim("A stale pop changes nothing.", index == spec.past(index), when=spec.past(pop & ~names_head & ~take))
    spec.claim("A stale pop is counted.", stale == (pop & ~names_head))
    spec.claim("Without a pop the head stands.", index == spec.past(index), when=spec.past(~pop & ~take))
