"""Each lane has one owner, and each stage one lane."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Mux, Value

from cuelight_rtl.params import Params
from cuelight_rtl.pipelines import LENGTHS, Pipelines

from .spec import Spec

__all__ = ["ownership", "promised"]


def promised(spec: Spec, room: Pipelines, params: Params) -> None:
    """What the core promises of the lanes' settings."""
    spec.promise("PIPELINE is set where that is legal.", room.legal, when=room.set_pipeline)
    spec.promise("FIRST_STAGE is a stage.", room.value < params.stages, when=room.set_first_stage)


def ownership(params: Params) -> Spec:
    room = Pipelines(params)
    spec = Spec(room)
    lanes = range(params.lanes)
    owners, lengths = Array(room.owners), Array(room.lengths)
    firsts = Array(room.first_stages)

    promised(spec, room, params)

    lane, other, number = spec.some("lane", 3), spec.some("other", 3), spec.some("number", 8)
    exist = (lane < params.lanes) & (other < params.lanes)
    spec.assume(exist)

    def claims(first: Value, taken: Value) -> Value:
        return (first <= taken) & (taken < first + lengths[first])

    owner = owners[lane]
    spec.claim(
        "A lane's owner is a group that has its own lane, and whose PIPELINE claims this one.",
        (owners[owner] == owner) & claims(owner, lane),
    )
    spec.claim(
        "Where two PIPELINE registers claim a lane, the larger one has it.",
        (lengths[owner] > lengths[other]) | (owner == other),
        when=claims(other, lane) & ~room.absorbed.bit_select(other, 1),
    )
    spec.claim("Absorbed are the groups whose lane is another's.", room.absorbed.bit_select(lane, 1) == (owner != lane))
    spec.claim(
        "A PIPELINE is 1, 2, 4 or 8, begins at a multiple of itself, and ends within the lanes.",
        Cat(
            Cat(room.lengths[each] == n for n in LENGTHS if each % n == 0 and each + n <= params.lanes).any()
            for each in lanes
        ).all(),
    )

    asked = room.lane
    old, new = Array([*room.lengths, *[1] * (8 - params.lanes)])[asked], room.value
    longer = Mux(old > new, old, new)[:4]
    vacant = Cat(~((asked <= each) & (each < asked + longer)) | room.vacant[each] for each in lanes).all()
    spec.claim(
        "PIPELINE n of lane g is legal if g is a multiple of n, g + n is not beyond the lanes, g is not absorbed, and"
        " all groups are vacant that the old value or the new one takes in; and only then.",
        room.legal
        == (
            (asked < params.lanes)
            & Cat((new == n) & (asked % n == 0) & (asked + n <= params.lanes) for n in LENGTHS).any()
            & ~room.absorbed.bit_select(asked, 1)
            & vacant
        ),
    )
    was = spec.past(Cat(room.owners))
    owner_was = was.word_select(lane, 3)
    begun = spec.past(1)
    spec.claim(
        "A group that is not vacant neither loses a lane nor gains one.",
        owner == owner_was,
        when=begun & ~(spec.past(room.vacant).bit_select(owner_was, 1) & spec.past(room.vacant).bit_select(owner, 1)),
    )

    runs = Array(Value.cast(room.runs(each, number)) for each in lanes)[lane]
    spec.claim("A stage runs on a lane of the group.", owners[runs] == owner)
    spec.claim(
        "It runs on the highest lane of the group whose FIRST_STAGE is not above it,"
        " on the group's own if no other's is.",
        ((runs == owner) | (firsts[runs] <= number)) & (runs >= other),
        when=(owners[other] == owner) & (other != owner) & (firsts[other] <= number),
    )
    spec.claim(
        "It does not depend on the pass: all passes of a group go the same way.",
        runs == Array(Value.cast(room.runs(each, number)) for each in lanes)[other],
        when=owners[other] == owner,
    )
    spec.reach("Four lanes are one pipeline.", owners[3] == 0)
    return spec
