"""Bus transactions take effect one by one, and reads have none."""

from __future__ import annotations

import warnings

from amaranth.hdl import Cat, Const, UnusedElaboratable, Value

from cuelight_rtl import regmap
from cuelight_rtl.core import Core
from cuelight_rtl.hand import RequestKind
from cuelight_rtl.lanes import Lanes
from cuelight_rtl.pages import Pages
from cuelight_rtl.params import Params
from cuelight_rtl.registers import Registers
from cuelight_rtl.trace import Counters, Rejects, Trace

from .spec import Spec

__all__ = ["bus"]


def bus(params: Params) -> Spec:
    """The register bank; core and pages answer as they like."""
    # Rooms around the one that is proven are never elaborated.
    warnings.simplefilter("ignore", UnusedElaboratable)
    pages = Pages(params)
    lanes = Lanes(params)
    core, trace, rejects = Core(params, pages, lanes), Trace([2]), Rejects()
    room = Registers(params, core, pages, lanes, trace, rejects, Counters(params), 0)
    offers = [Value.cast(offer) for offer in pages.offer]
    free = [pages.settled, pages.complete, Value.cast(pages.command), Value.cast(pages.attr), pages.attr_state]
    spec = Spec(room, around=[*free, core.active, pages.offered, *offers])
    port, request = room.bus, room.request
    valid, write, address = spec.inside("valid"), spec.inside("write"), spec.inside("address")
    spec.assume(port.address[:3] == 0)
    spec.assume(~request.done | request.valid)
    spec.assume(~pages.complete | pages.cmd_write)

    accepted = port.valid & port.ready
    decoded = valid & write
    is_lane = address >= regmap.COMPLETION
    spec.claim(
        "A transaction waits until the one before has had its whole effect.",
        ~request.valid & ~(decoded & ~is_lane) & pages.settled,
        when=accepted,
    )
    asked = Cat(getattr(request, name) for name in ("kind", "page", "command", "attr", "attr_state", "offset", "value"))
    spec.claim(
        "What is asked of the core stands until it is done.",
        request.valid & (asked == spec.past(asked)),
        when=spec.past(request.valid & ~request.done),
    )
    spec.claim("What is done is not asked again.", ~request.valid, when=spec.past(request.done))
    spec.claim(
        "Nothing is written in the cycle in which something asked of the core is done, nor in the one after.",
        ~decoded,
        when=request.done | spec.past(request.done),
    )
    rises = request.valid & ~spec.past(request.valid)
    spec.claim("Only a write asks something of the core.", spec.past(decoded), when=rises)
    spec.claim(
        "A 32-bit register takes a write only with all four of its bytes.",
        spec.past(pages.strobe[:4].all()),
        when=rises & (request.kind != RequestKind.COMMAND),
    )
    spec.claim(
        "The core is asked to carry out a command when the page has it complete, and only then.",
        rises & (request.kind == RequestKind.COMMAND),
        when=spec.past(pages.complete),
    )
    spec.claim(
        "A command is asked for only when it is complete.",
        spec.past(pages.complete),
        when=rises & (request.kind == RequestKind.COMMAND),
    )
    lane_writes = Cat(
        (lane.finished_write, lane.done_write, lane.taken_write, lane.reoffer_write) for lane in lanes.dispatchers
    )
    writes = Cat(pages.cmd_write, pages.attr_write, trace.pop, rejects.pop, lane_writes)
    spec.claim("Reads have no side effects.", ~writes.any(), when=~decoded)
    spec.claim("A write acts in one place.", (writes & (writes - 1)) == 0, when=decoded)
    spec.claim("A pop takes all four bytes of its index.", pages.strobe[:4].all(), when=trace.pop | rejects.pop)
    taken, reading = spec.past(accepted & ~port.write), spec.inside("reading")
    read = spec.past(taken)
    spec.lemma("A read that was accepted is decoded, then read.", ((valid & ~write) == taken) & (reading == read))
    spec.claim(
        "A read is answered three cycles after it was accepted, and nothing else is.",
        port.answer_valid == spec.past(read),
    )
    spec.claim(
        "Lanes are not written while the core is asked, nor in the cycle after.",
        ~lane_writes.any(),
        when=request.valid | spec.past(request.valid),
    )
    spec.lemma("While the core is asked, no write is decoded.", ~decoded, when=request.valid)
    page = spec.some("page", 3)
    status = spec.inside("answer")[:32]
    reads_status = reading & (spec.inside("read_address") == regmap.PAGE_STRIDE * page)
    offered = pages.offered.bit_select(page, 1)
    spec.assume(core.active <= params.slots)
    spec.claim(
        "REQ_STATUS reads how many requests are active, and the slot that its page is offered.",
        status == Cat(core.active, pages.offer[page].slot),
        when=reads_status & offered,
    )
    spec.claim(
        "Without an offer its upper half is all ones.",
        status == Cat(core.active, Const(0xFFFF)),
        when=reads_status & ~offered,
    )
    spec.claim("REQ_STATUS is never all ones.", ~status.all(), when=reads_status)
    return spec
