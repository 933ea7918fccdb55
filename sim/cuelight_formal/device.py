"""The whole device: what commits say fits together, from a scene on, whatever is written."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Mux, Value

from cuelight_rtl.params import Params
from cuelight_rtl.regmap import CommitKind
from cuelight_rtl.slots import Life
from cuelight_sim.steps import OF_WRITES

from .scenes import Scene, play
from .spec import Spec
from .witness import Witness

__all__ = ["ADDRESSES", "DATA", "device"]

ADDRESSES = 0xF9F8
"""Bits of a free write's address that may be 1."""
DATA = 0x0003_0003_FFFF_FFFF
"""Bits of its data that may be 1."""

_OF_A_REQUEST = {
    CommitKind.RETARGET: (Life.WAITING,),
    CommitKind.STAGE_DONE: (Life.RUNNING, Life.SEATED),
    CommitKind.CANCEL: (Life.RUNNING, Life.WAITING, Life.QUEUED, Life.SEATED, Life.PARKED),
    CommitKind.SEAT: (Life.QUEUED,),
    CommitKind.RETIRE: (Life.QUEUED, Life.SEATED, Life.PARKED),
    CommitKind.FREE: (Life.RETIRED,),
    CommitKind.ADVANCE: (Life.SEATED,),
    CommitKind.CHUNK: (Life.SEATED,),
    CommitKind.PAUSE: (Life.SEATED,),
}
"""Where a request may stand of which the core commits this."""


def device(params: Params, scene: Scene, played: bool = False) -> Spec:
    """From the end of a scene on, any write of eight bytes in any cycle, to pages, lanes, FIFOs, and CONTROL.

    With `ADDRESSES` groups' and tiers' settings, which are the scene's, stay, and completion entries from 8 on are
    never written. With `DATA` commands name slots that there are, with epochs up to 3. Where it is played, a script
    writes.
    """
    room = Witness(params)
    spec = Spec(room, lasting=True, played=played)
    play(spec, room, scene)
    core, lane, bus = room.core, room.lane, room.bus
    if not played:
        spec.m.d.comb += [
            bus.valid.eq(spec.any("valid", 1)),
            bus.write.eq(1),
            bus.address.eq(spec.any("address", 16) & ADDRESSES),
            bus.data.eq(spec.any("data", 64) & DATA),
            bus.strobe.eq(0xFF),
        ]

    life, ours = room.life[room.slot], room.id[room.slot] == core.id
    admits = room.says(CommitKind.ADMIT)
    spec.claim(
        "A request is admitted to a slot that is free and was offered.",
        (life == Life.FREE) & room.offered.bit_select(room.slot, 1),
        when=admits,
    )
    of_one = Cat(room.says(kind) for kind in _OF_A_REQUEST).any()
    spec.claim(
        "What becomes of a request fits what has become of it: its life has an order, and it retires once.",
        ours
        & Cat(
            ~room.says(kind) | Cat(life == each for each in lives).any() for kind, lives in _OF_A_REQUEST.items()
        ).all(),
        when=of_one,
    )
    effect = core.stage[:3]
    parks, credits, cancels = (room.says(kind) for kind in (CommitKind.PARK, CommitKind.CREDIT, CommitKind.CANCEL))
    queued, seated, parked = (ours & (life == each) for each in (Life.QUEUED, Life.SEATED, Life.PARKED))
    spec.claim(
        "So do the effects of CANCEL, PARK and CREDIT.",
        Mux(
            cancels,
            Array([~queued & ~parked & ~seated, queued | parked, seated, seated])[effect[:2]],
            Mux(
                parks,
                Array([Const(1), queued, seated, seated | parked, queued])[effect],
                Array([Const(1), parked, seated, queued | seated, queued | seated])[effect],
            ),
        ),
        when=cancels | ((parks | credits) & (effect != 0)),
    )
    sits = room.sits.bit_select(room.seat, 1)
    seats, leaves = room.says(CommitKind.SEAT), room.says(CommitKind.RETIRE) & ~core.detail[8]
    in_seat = Cat(room.says(kind) for kind in (CommitKind.ADVANCE, CommitKind.CHUNK, CommitKind.PAUSE)).any() | leaves
    spec.claim(
        "A seat is given away while it is free, and what is done in a seat is done with who sits there.",
        Mux(seats, ~sits, sits & (room.sitter[room.seat] == room.slot)),
        when=seats | in_seat,
    )
    spec.claim(
        "Who retires without a seat has none.",
        ~Cat(room.sits[seat] & (room.sitter[seat] == room.slot) for seat in range(params.seats)).any(),
        when=room.says(CommitKind.RETIRE) & core.detail[8],
    )
    named = Mux(core.stage[0], 0b10, 0b01)
    spec.claim(
        "Passes go from PLAN over CHUNK to FORM, and from there to LOOP_POINT and ADVANCE; one is formed at a time.",
        Mux(room.says(CommitKind.PLAN), ~room.forming.any() & ~(room.alive & named).any(), 1)
        & (~(room.says(CommitKind.CHUNK) | room.says(CommitKind.FORM)) | room.forming.any())
        & (~room.says(CommitKind.LOOP_POINT) | ((room.alive & named).any() & ~room.forming.any()))
        & (~room.says(CommitKind.ADVANCE) | room.looping.any()),
        when=Cat(
            room.says(kind)
            for kind in (CommitKind.PLAN, CommitKind.CHUNK, CommitKind.FORM, CommitKind.LOOP_POINT, CommitKind.ADVANCE)
        ).any(),
    )
    first, second = (spec.inside(f"scheduler.core.pass_{k}.view__members") for k in range(2))
    spec.claim("A seat is in one pass alive at most.", (first & second) == 0, when=room.alive.all())
    goes, ends, taken, reoffered = (
        room.tells(kind) for kind in (CommitKind.DISPATCH, CommitKind.COMPLETE, CommitKind.TAKEN, CommitKind.REOFFERED)
    )
    depth = spec.inside("scheduler.lanes.lane_0.depth")
    before = room.stage[lane.detail[10]]
    spec.claim(
        "A stage is dispatched of a pass alive, the one after its latest, while fewer than DEPTH are outstanding.",
        (room.outstanding < depth)
        & room.alive.bit_select(lane.detail[10], 1)
        & Mux(before == 0, (lane.stage == 1) | (lane.stage == 2), lane.stage == before + 1),
        when=goes,
    )
    spec.claim(
        "What completes, or is offered again with those after it, is the oldest outstanding; what is taken, the oldest"
        " that was not.",
        Mux(
            taken,
            (room.untaken != 0) & (lane.id == room.sequences[(room.outstanding - room.untaken)[0]]),
            (room.outstanding != 0) & (lane.id == room.sequences[0]),
        ),
        when=ends | taken | reoffered,
    )
    shown, offered = spec.inside("scheduler.lanes.lane_0.head"), spec.inside("scheduler.lanes.lane_0.offered")
    spec.claim(
        "The poll head shows a dispatch exactly as long as one was not taken, the oldest of them.",
        (offered == (room.untaken != 0))
        & (~offered | (shown[:32] == room.sequences[(room.outstanding - room.untaken)[0]])),
    )
    free, total = (spec.inside(f"scheduler.core.seats_0.{name}") for name in ("blocks_free", "blocks_total"))
    held: Value = room.blocks[0] + 0
    for each in range(1, params.slots):
        held = held + room.blocks[each]
    spec.claim(
        "KV blocks are free or held by a request that has not retired: credit is never negative.", free + held == total
    )
    active = spec.inside("scheduler.core.active")
    occupied: Value = Const(0)
    for each in range(params.slots):
        occupied = occupied + (room.life[each] != Life.FREE)
    spec.claim(
        "Active are the slots that are not free, so that REQ_STATUS is never all ones.",
        active == occupied,
    )
    spec.claim(
        "A slot is free, offered to one page, or in use.",
        Cat(~room.offered[each] | (room.life[each] == Life.FREE) for each in range(params.slots)).all(),
        when=room.offered.any(),
    )
    offers, page_slot = room.pages.kind == CommitKind.OFFER, room.pages.id[: params.slot_bits]
    spec.claim(
        "A slot is offered that is free and not offered, and withdrawn that is.",
        room.offered.bit_select(page_slot, 1) == ~offers,
        when=room.pages.valid,
    )
    frees = room.says(CommitKind.FREE)
    spec.claim(
        "Retired requests are freed in the order in which they retired, and counted.",
        (room.retired_count != 0) & (room.slot == room.retired[0]) & (core.detail == room.freed),
        when=frees,
    )
    done, asked = (spec.inside(f"scheduler.registers.request__{name}") for name in ("done", "valid"))
    written = core.valid & Cat(core.kind == kind for kind in sorted(OF_WRITES)).any()
    spec.claim("Each write that asks something of the core has one commit of its own.", done == written, when=asked)
    spec.claim("No commit says that something was written without a write.", ~written, when=~asked)
    return spec
