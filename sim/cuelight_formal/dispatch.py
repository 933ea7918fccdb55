"""A lane's dispatches are completed in their order, once each, and none is lost."""

from __future__ import annotations

from amaranth.hdl import Cat, Mux, Signal, Value

from cuelight_rtl.dispatch import Dispatcher
from cuelight_rtl.params import Params
from cuelight_rtl.regmap import CommitKind

from .spec import Spec

__all__ = ["dispatches", "promised"]


def promised(spec: Spec, room: Dispatcher, resting: Value) -> None:
    """What the core promises a lane, which is ``resting`` if nothing is outstanding, and no pass has a stage for it."""
    value = room.value
    spec.promise("Reports are not of what is dropped.", ~room.report, when=room.drop)
    spec.promise("A report is awaited.", room.awaited.bit_select(room.report_seat, 1), when=room.report)
    spec.promise(
        "DEPTH is 1 or 2, and set while the lane rests.", resting & ((value == 1) | (value == 2)), when=room.set_depth
    )
    spec.promise(
        "SEQUENCE is legal, and set while the lane rests.",
        resting & (value[:16] != 0) & ~value[:16].all(),
        when=room.set_sequence,
    )


def dispatches(params: Params) -> Spec:
    """Lane 0 beside a ghost that counts, and follows one dispatch, whichever, from its start to its end."""
    room = Dispatcher(params, 0)
    spec = Spec(room)
    m, step = spec.m, room.step
    go, done = room.go.any(), room.done.any()
    writes = Cat(room.done_write, room.taken_write, room.reoffer_write, room.finished_write)
    written = writes.any()

    reported = spec.past(room.report)
    others = spec.past(room.awaited & ~(1 << room.report_seat)[: params.seats])

    # What the register bank promises: one write at a time, none in the cycle of a report and in the one after.
    spec.assume(((writes & (writes - 1)) == 0) & ~(written & (room.drop | room.report)))
    spec.assume(~(reported & (written | room.report)))
    promised(spec, room, resting=~room.outstanding & ~room.ready.any())

    count, untaken = Signal(2), Signal(2)
    takes = step.valid & (step.kind == CommitKind.TAKEN)
    reoffers = step.valid & (step.kind == CommitKind.REOFFERED)
    gone = done & (untaken == count)
    with m.If(room.drop):
        m.d.sync += [count.eq(0), untaken.eq(0)]
    with m.Elif(reoffers):
        m.d.sync += untaken.eq(count)
    with m.Else():
        m.d.sync += [count.eq(count + go - done), untaken.eq(untaken + go - gone - takes)]

    follow = spec.any("follow", 1)
    followed, ahead = Signal(), Signal(2)
    sequence, whose, stage = Signal(32), Signal(len(room.go)), Signal.like(room.next[0])
    with m.If(room.drop | (followed & done & (ahead == 0))):
        m.d.sync += followed.eq(0)
    with m.Elif(followed & done):
        m.d.sync += ahead.eq(ahead - 1)
    with m.Elif(go & ~followed & follow):
        m.d.sync += [followed.eq(1), ahead.eq(count - done), sequence.eq(step.id), whose.eq(room.go)]
        for place in range(len(room.next)):
            with m.If(room.go[place]):
                m.d.sync += Value.cast(stage).eq(Value.cast(room.next[place]))
    oldest = followed & (ahead == 0)
    named = (room.done_sequence == sequence) & (room.entry == sequence[:4])

    spec.claim("At most DEPTH dispatches are outstanding.", count <= room.depth)
    spec.claim("DEPTH is 1 or 2.", (room.depth == 1) | (room.depth == 2))
    spec.claim(
        "A dispatch is of one pass, which has a stage ready.",
        ((room.go & (room.go - 1)) == 0) & ((room.go & ~room.ready) == 0),
        when=go,
    )
    spec.claim("The second pass goes first.", room.go == 1, when=go & room.ready[0])
    spec.claim(
        "Nothing but a write, a completion or DEPTH keeps a stage that is ready waiting.",
        go,
        when=room.ready.any() & (count < room.depth) & ~written & ~done & ~room.drop,
    )
    firsts = range(len(room.go) - 1)
    latest = Signal(range(max(len(firsts), 2)))
    nearest: Value = Value.cast(0)
    for distance in reversed(firsts):
        place = (latest + distance)[: len(latest)]
        nearest = Mux(room.ready[1:].bit_select(place, 1), place, nearest)
    for place in firsts:
        with m.If(room.go[place + 1]):
            m.d.sync += latest.eq(place)
    spec.claim(
        "Else the pass of the latest dispatch goes on, or the next one in turn.",
        room.go[1:].bit_select(nearest[: len(latest)], 1),
        when=go & ~room.ready[0],
    )

    spec.claim("What is dispatched is reported with its sequence.", step.kind == CommitKind.DISPATCH, when=go)
    spec.claim("Low halves 0 and 0xFFFF are skipped.", (step.id[:16] != 0) & ~step.id[:16].all(), when=go)
    before, counted = Signal(32), Signal()
    with m.If(go):
        m.d.sync += [before.eq(step.id), counted.eq(1)]
    with m.Elif(room.set_sequence):
        m.d.sync += counted.eq(0)

    def after(value: Signal) -> Value:
        return (value + Mux(value[:16] == 0xFFFE, 3, 1))[:32]

    spec.claim(
        "A dispatch has the sequence after the one before, through drops too.",
        step.id == after(before),
        when=go & counted,
    )

    counting, cycles = Signal(), Signal(12)
    with m.If(done | room.arrives | (room.planned & ~counting)):
        m.d.sync += [counting.eq(1), cycles.eq(0)]
    with m.Elif(go | room.rest):
        m.d.sync += counting.eq(0)
    with m.Elif(counting):
        m.d.sync += cycles.eq(Mux(cycles == 0xFFE, cycles, cycles + 1))
    shown = step.detail[16:28]
    spec.claim(
        "A dispatch shows how many cycles ago its cause was: the latest completion of the lane, or the one by which the"
        " pass could go on to it, or the PLAN of a pass that begins there if nothing was counted; 0xFFF at most.",
        (shown == cycles + 1) & (room.decision_cycles == shown),
        when=go & counting,
    )
    spec.claim(
        "It shows 1 where nothing has been counted since the dispatch before, or since the group rested.",
        shown == 1,
        when=go & ~counting,
    )
    spec.lemma(
        "The lane counts as the ghost does.",
        (spec.inside("counting") == counting) & (~counting | (spec.inside("cycles") == cycles + 1)) & (cycles < 0xFFF),
    )

    spec.claim("Only what is outstanding is completed, and one at a time.", count != 0, when=done)
    spec.claim(
        "The oldest is completed, and reported with its sequence and stage.",
        (room.done == whose)
        & (step.kind == CommitKind.COMPLETE)
        & (step.id == sequence)
        & (step.stage == stage.stage)
        & (room.done_final == stage.final),
        when=done & oldest,
    )
    spec.claim(
        "BATCH_DONE with the sequence of the oldest, in its entry, completes it.",
        done,
        when=room.done_write & oldest & named,
    )
    spec.claim(
        "Any other BATCH_DONE completes nothing, and is reported as ignored.",
        ~done & (step.kind == CommitKind.COMPLETE_IGNORED),
        when=room.done_write & ((oldest & ~named) | (count == 0)),
    )
    spec.claim(
        "Without BATCH_DONE it is completed in the cycle after the last member's report.",
        reported & (others == 0),
        when=done & ~room.done_write,
    )
    spec.claim(
        "The last member's report completes it, unless it is dropped.",
        done,
        when=reported & (others == 0) & ~room.drop,
    )
    spec.claim(
        "What is dispatched stays outstanding until it is completed or dropped.", room.outstanding == (count != 0)
    )
    spec.claim("OLDEST reads the sequence of the oldest.", room.oldest == sequence, when=oldest)
    spec.claim("It reads zero where none is outstanding.", room.oldest == 0, when=count == 0)
    spec.claim(
        "A FINISHED word that is not in the entry of the oldest is not kept.",
        room.finish_seats == spec.past(room.finish_seats),
        when=spec.past(room.finished_write & oldest & (room.entry != sequence[:4]) & ~done),
    )
    spec.claim("No word is kept for the dispatch after.", room.finish_seats == 0, when=spec.past(done | (count == 0)))

    spec.claim(
        "The poll head shows the oldest dispatch that was not taken.",
        room.offered
        & (room.head.sequence == sequence)
        & (room.head.stage == stage.stage)
        & (room.head.first == stage.first)
        & (room.head.last == stage.last)
        & whose.bit_select(room.offered_pass, 1),
        when=followed & (ahead + untaken == count),
    )
    spec.claim(
        "It reads zero where all were taken.",
        ~room.offered & ~Value.cast(room.head).any() & ~Value.cast(room.second).any() & ~Value.cast(room.tail).any(),
        when=untaken == 0,
    )
    spec.claim(
        "POP takes the dispatch whose sequence it has, if it is the head's; any other is counted.",
        takes == ~room.stale,
        when=room.taken_write,
    )
    spec.claim(
        "REOFFER with the sequence of the oldest outstanding dispatch offers all that are outstanding again.",
        reoffers & (step.id == sequence) & ~room.stale,
        when=room.reoffer_write & oldest & (room.done_sequence == sequence),
    )
    spec.claim(
        "Any other REOFFER does nothing, and is counted.",
        ~step.valid & room.stale,
        when=room.reoffer_write & ((oldest & (room.done_sequence != sequence)) | (count == 0)),
    )
    spec.claim(
        "A dispatch that was taken is not shown until REOFFER.",
        ~room.offered | (room.head.sequence != sequence),
        when=followed & (ahead + untaken < count),
    )

    spec.lemma("A last report is one.", spec.inside("reported") == (reported & (others == 0)))
    held = {name: spec.inside(f"{name}_valid") for name in ("oldest", "newest")}
    spec.lemma("Places are filled from the oldest on.", held["oldest"] | ~held["newest"])
    spec.lemma("Outstanding dispatches are those in the places.", count == held["oldest"] + held["newest"])
    spec.lemma("DEPTH 1 uses one place.", ~held["newest"] | (room.depth == 2))
    spec.lemma(
        "Each is of a pass that there is.",
        Cat(~held[name] | (spec.inside(f"{name}_whose") < len(room.go)) for name in held).all(),
    )
    taken = {name: spec.inside(f"{name}_taken") for name in held}
    spec.lemma(
        "They are taken in their order.",
        (~(held["newest"] & taken["newest"]) | taken["oldest"])
        & (untaken == (held["oldest"] & ~taken["oldest"]) + (held["newest"] & ~taken["newest"])),
    )
    for name, place in (("oldest", 0), ("newest", 1)):
        kept = [spec.inside(f"{name}_{field}") == stage[field] for field in ("stage", "first", "last", "final")]
        spec.lemma(
            f"The {name} place has what was dispatched.",
            Cat(
                held[name],
                spec.inside(f"{name}_sequence") == sequence,
                whose == (1 << spec.inside(f"{name}_whose"))[: len(whose)],
                *kept,
            ).all(),
            when=followed & (ahead == place),
        )
    spec.lemma("What is followed is outstanding.", ahead < count, when=followed)
    spec.lemma("The lane knows its latest dispatch.", spec.inside("latest") == latest)
    spec.lemma(
        "The next sequence is legal, and follows the one before.",
        (room.sequence[:16] != 0) & ~room.sequence[:16].all() & (~counted | (room.sequence == after(before))),
    )
    older, newer = spec.inside("oldest_sequence"), spec.inside("newest_sequence")
    spec.lemma(
        "Outstanding dispatches have the latest sequences.",
        counted & (Mux(held["newest"], newer, older) == before) & (~held["newest"] | (newer == after(older))),
        when=held["oldest"],
    )
    spec.reach("Two are outstanding, one taken.", (count == 2) & (untaken == 1))
    spec.reach("Two that were taken are offered again.", (count == 2) & (untaken == 0) & reoffers)
    return spec
