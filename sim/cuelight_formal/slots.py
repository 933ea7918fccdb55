"""A slot's rows are what was written to them last, and nothing else changes them."""

from __future__ import annotations

from amaranth.hdl import Array, Signal, Value

from cuelight_rtl.params import Params
from cuelight_rtl.slots import Life, Owner, Slots

from .spec import Spec

__all__ = ["promised", "rows"]


def rows(params: Params) -> Spec:
    """The rows of one slot, whichever, beside a ghost that remembers what was written to it."""
    room = Slots(params)
    spec = Spec(room)
    m = spec.m
    mine = spec.some("mine", params.slot_bits)
    promised(spec, room)

    cleared, touched, filled = Signal(), Signal(), Signal()
    with m.If(~room.swept & (room.sweep == mine)):
        m.d.sync += cleared.eq(1)
    with m.If(room.slot == mine):
        m.d.sync += [touched.eq(touched | room.write_owner), filled.eq(filled | room.write_work)]
    owner_row, written = _follow(spec, "owner", mine, room.write_owner, room.next_owner, room.owner, cleared)
    _follow(spec, "work", mine, room.write_work, room.next_work, room.work, filled)
    owner = Owner(owner_row)
    spec.claim(
        "After the sweep every slot is FREE with epoch 0 until it is written, whatever the RAM held before.",
        (owner.life == Life.FREE) & (owner.epoch == 0),
        when=room.swept & ~touched,
    )
    spec.lemma("The ghost is blank until then.", written == 0, when=~touched)
    spec.lemma("Nothing is written before the sweep is done.", room.swept, when=touched | filled)
    spec.lemma("The sweep has cleared the slots that it has passed.", cleared == (room.swept | (room.sweep > mine)))
    spec.lemma("The sweep stops at the first slot.", room.sweep == 0, when=room.swept)
    swept_before = spec.past(room.swept)
    spec.claim("The sweep is done once.", room.swept, when=swept_before)
    spec.claim(
        "The sweep is done when it has cleared the last slot.",
        spec.past(room.sweep) == params.slots - 1,
        when=room.swept & ~swept_before,
    )
    return spec


def promised(spec: Spec, room: Slots) -> None:
    """What the core promises the slots' rows."""
    spec.promise("Nothing is written before the sweep is done.", room.swept, when=room.write_owner | room.write_work)


def _follow(
    spec: Spec, name: str, mine: Value, write: Value, next_row: Value, shown: Value, known: Value
) -> tuple[Value, Signal]:
    """Claims of one of the slot's rows; returns that row and the ghost's memory of it."""
    room = spec.room
    row = Array(spec.rows(f"{name}_ram"))[mine]
    written = Signal.like(Value.cast(shown), name=f"written_{name}")
    with spec.m.If(write & (room.slot == mine)):
        spec.m.d.sync += written.eq(next_row)
    spec.claim(
        f"A slot's {name} row is what was written to it last, whatever is written to other slots.",
        row == written,
        when=known,
    )
    then, asked = spec.past(written), spec.past((room.fetch == mine) & known)
    spec.lemma(f"The RAM of {name} rows was read a cycle ago.", spec.read_data(f"{name}_ram") == then, when=asked)
    spec.claim(
        f"The {name} row shows two cycles after it was asked for.",
        Value.cast(shown) == spec.past(then),
        when=spec.past(asked),
    )
    return row, written
