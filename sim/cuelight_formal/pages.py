"""Commands are whole before they do anything, and a slot is offered to one page only."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Mux, Signal, Value

from cuelight_rtl.pages import AttrState, Pages
from cuelight_rtl.params import PAGES, Params
from cuelight_rtl.regmap import CommitKind

from .spec import Spec

__all__ = ["commands", "offers", "promised"]


def commands(params: Params) -> Spec:
    """One page, whichever, beside a ghost that remembers its bytes."""
    room = Pages(params)
    spec = Spec(room)
    m = spec.m
    mine = spec.some("mine", 3)
    here = room.page == mine
    writes_cmd, writes_attr = here & room.cmd_write, here & room.attr_write & room.strobe.any()
    spec.assume(~(room.cmd_write & room.attr_write))

    got, attr_got = Signal(8), Signal(8)
    word, attr_word = Signal(64), Signal(64)
    arrived, merged = Signal(8), Signal(64)
    lanes = Cat(bit.replicate(8) for bit in room.strobe)
    m.d.comb += [arrived.eq(got | room.strobe), merged.eq((word & ~lanes) | (room.data & lanes))]
    with m.If(writes_cmd):
        m.d.sync += [word.eq(merged), got.eq(Mux(arrived.all(), 0, arrived))]
        with m.If(arrived.all()):
            m.d.sync += attr_got.eq(0)
    with m.Elif(writes_attr):
        m.d.sync += [
            got.eq(0),
            attr_got.eq(Mux(attr_got.all(), room.strobe, attr_got | room.strobe)),
            attr_word.eq((attr_word & ~lanes) | (room.data & lanes)),
        ]

    flags = Array(spec.inside(f"cmd_got_{page}") for page in range(PAGES))[mine]
    attr_flags = Array(spec.inside(f"attr_got_{page}") for page in range(PAGES))[mine]
    row, attr_row = Array(spec.rows("cmd_ram"))[mine], Array(spec.rows("attr_ram"))[mine]

    def bytes_kept(shown: Value, ghost: Value, bytes_: Value) -> Value:
        return Cat((shown.word_select(i, 8) == ghost.word_select(i, 8)) | ~bytes_[i] for i in range(8)).all()

    spec.claim(
        "A command is complete when the last of its eight bytes arrives.",
        room.complete,
        when=writes_cmd & arrived.all(),
    )
    spec.claim("A command that lacks a byte does nothing.", ~room.complete, when=writes_cmd & ~arrived.all())
    spec.claim("Nothing is complete without a write to SCHED_CMD.", ~room.complete, when=~room.cmd_write)
    spec.claim(
        "A complete command has the bytes that were written last, in whichever order and pieces they came.",
        Value.cast(room.command) == merged,
        when=writes_cmd & arrived.all(),
    )
    spec.claim(
        "Attributes are absent, partial or whole as no, some or all of their bytes have come.",
        room.attr_state
        == Mux(attr_got.all(), AttrState.WHOLE, Mux(attr_got.any(), AttrState.PARTIAL, AttrState.ABSENT)),
        when=here,
    )
    spec.claim(
        "Whole attributes are those that were written last.",
        Value.cast(room.attr) == attr_word,
        when=here & attr_got.all(),
    )
    spec.claim("A write to SCHED_ATTR discards the half command.", flags == 0, when=spec.past(writes_attr))
    spec.claim(
        "A complete command takes its page's attributes with it.",
        (flags == 0) & (attr_flags == 0),
        when=spec.past(writes_cmd & arrived.all()),
    )
    kept = Cat(flags, attr_flags, row, attr_row)
    spec.claim(
        "Writes to other pages, and writes without a strobe, leave a page as it is.",
        kept == spec.past(kept),
        when=spec.past(~here | ~(room.cmd_write | room.attr_write) | ~room.strobe.any() & ~arrived.all()),
    )
    spec.lemma("Flags are set for the bytes that came.", (flags == got) & (attr_flags == attr_got))
    spec.lemma("A half command never has all of its bytes.", ~got.all())
    spec.lemma("Bytes that came are kept.", bytes_kept(row, word, got) & bytes_kept(attr_row, attr_word, attr_got))
    return spec


def promised(spec: Spec, room: Pages, params: Params) -> Array[Signal]:
    """What the core promises of offers; returns which slots are in use."""
    m = spec.m
    used = Array(Signal(name=f"used_{slot}") for slot in range(params.slots))
    offering = (room.enable & room.offered).bit_select(room.accept_page, 1)
    spec.promise("Only an offer of an enabled page is accepted.", offering, when=room.accept)
    spec.promise("Only a slot in use is freed.", used[room.release_slot], when=room.release)
    accepted = room.offer[room.accept_page].slot
    with m.If(room.accept):
        m.d.sync += used[accepted[: params.slot_bits]].eq(1)
    with m.If(room.release):
        m.d.sync += used[room.release_slot].eq(0)
    return used


def offers(params: Params) -> Spec:
    """Every slot beside a ghost that knows whether it is in use."""
    room = Pages(params)
    spec = Spec(room)
    m, slots, pages = spec.m, range(params.slots), range(PAGES)

    # The sweep of the rows after reset.
    sweep, swept = Signal(range(params.slots + 1)), Signal()
    m.d.comb += [swept.eq(sweep == params.slots), room.swept.eq(swept), room.sweep.eq(sweep)]
    with m.If(~swept):
        m.d.sync += sweep.eq(sweep + 1)

    used = promised(spec, room, params)

    # The free list: a queue in RAM, and the entry that stands at its output.
    entries = spec.rows("free.storage")
    produce, consume, level = (spec.inside(f"free.{name}") for name in ("produce", "consume", "inner_level"))
    out, out_valid = spec.read_data("free.storage"), spec.inside("free.r_rdy")
    depth = len(entries)
    filled = [
        Mux(consume <= index, level > Const(index, 8) - consume, level > Const(index + depth, 8) - consume)
        for index in range(depth)
    ]
    listed = [(filled[index], entries[index]) for index in range(depth)] + [(out_valid, out)]
    offered = [(room.offered[page], Value.cast(room.offer[page])) for page in pages]

    def places(slot: int) -> Value:
        """In how many places ``slot`` is."""
        held = [valid & (entry[:16] == slot) for valid, entry in listed + offered]
        return sum((Value.cast(here) for here in held), start=used[slot] + (sweep <= slot))

    spec.claim(
        "Every slot is in one place: not swept yet, in the free list, offered to one page, or in use.",
        Cat(places(slot) == 1 for slot in slots).all(),
    )
    first, second = spec.some("first", 3), spec.some("second", 3)
    both = room.offered.bit_select(first, 1) & room.offered.bit_select(second, 1) & (first != second)
    spec.claim("No two pages are offered the same slot.", room.offer[first].slot != room.offer[second].slot, when=both)
    spec.claim(
        "No page is offered a slot that is in use.",
        ~used[room.offer[first].slot[: params.slot_bits]],
        when=room.offered.bit_select(first, 1),
    )
    spec.claim("Nothing is offered before the sweep is done.", ~room.offered.any(), when=~swept)
    stands = room.enable.bit_select(first, 1) & room.offered.bit_select(first, 1)
    spec.claim(
        "An offer stands until it is accepted or its page is disabled.",
        room.offered.bit_select(first, 1) & (Value.cast(room.offer[first]) == spec.past(Value.cast(room.offer[first]))),
        when=spec.past(stands & ~(room.accept & (room.accept_page == first))),
    )
    spec.claim(
        "An accepted offer is used up.",
        ~room.offered.bit_select(first, 1),
        when=spec.past(room.accept & (room.accept_page == first)),
    )
    step = room.step
    offering = step.valid & (step.kind == CommitKind.OFFER)
    lacking = room.enable & ~room.offered
    spec.claim(
        "The lowest page that lacks an offer comes first.",
        (lacking & ~(~Const(0, PAGES) << first)) == 0,
        when=offering & (step.stage == first),
    )
    spec.claim(
        "Only an enabled page gets an offer.", lacking.bit_select(first, 1), when=offering & (step.stage == first)
    )
    taken_back = step.valid & (step.kind == CommitKind.UNOFFER)
    spec.claim(
        "Only a disabled page loses its offer to the free list.",
        (room.offered & ~room.enable).bit_select(first, 1),
        when=taken_back & (step.stage == first),
    )
    quiet = swept & room.settled & ~(room.accept | room.release | room.set_enable)
    spec.claim(
        "Where offers are settled, none changes by itself.",
        (room.offered == spec.past(room.offered)) & ~step.valid,
        when=spec.past(quiet) & ~(room.accept | room.release | room.set_enable),
    )
    spec.claim(
        "Where offers are settled, every page that is enabled has one, unless no slot is free.",
        ~lacking.any() | ((level == 0) & ~out_valid),
        when=swept & room.settled,
    )
    spec.claim("The free list never overflows.", spec.inside("free.w_rdy"), when=spec.inside("free.w_en"))

    # The free list itself is first in, first out: fifo.py.
    enters, entering = spec.inside("free.w_en"), spec.inside("free.w_data")
    following_freed = Mux(room.release_epoch == 0xFFFF, 1, room.release_epoch + 1)
    spec.claim(
        "A slot that is freed joins the free list in the same cycle.",
        enters & (entering == Cat(room.release_slot, Const(0, 16 - params.slot_bits), following_freed[:16])),
        when=room.release,
    )
    spec.claim("The sweep lists the slots in ascending order.", enters & (entering[:16] == sweep), when=~swept)
    spec.claim(
        "What is offered is taken off the head of the free list.",
        spec.inside("free.r_en") & out_valid & (step.id == out),
        when=offering,
    )

    # Epochs, of one slot, whichever.
    mine, last = spec.some("mine", params.slot_bits), Signal(16)
    with m.If(room.release & (room.release_slot == mine)):
        m.d.sync += last.eq(room.release_epoch)
    following = Mux(last == 0xFFFF, 1, last + 1)
    spec.claim(
        "A slot is offered with the epoch after its last one, and never with 0.",
        room.offer[first].epoch == following,
        when=room.offered.bit_select(first, 1) & (room.offer[first].slot == mine),
    )
    spec.lemma(
        "So is it listed.",
        Cat(~valid | (entry[:16] != mine) | (entry[16:] == following) for valid, entry in listed + offered).all(),
    )
    spec.lemma("A slot has no last epoch before it is swept.", last == 0, when=sweep <= mine)
    in_use = sum(used[slot] for slot in slots)
    active = Signal(16)
    m.d.sync += active.eq(active + room.accept - room.release)
    spec.lemma("No slot is in use before the sweep is done.", in_use == 0, when=~swept)
    spec.claim(
        "Slots in use are counted: one more with each admission, one less with each that is freed.", active == in_use
    )
    spec.claim("REQ_STATUS is never all ones: no more slots are in use than there are.", active <= params.slots)
    spec.lemma(
        "Free, offered and used slots are all that were swept.",
        level + out_valid + sum(room.offered[page] for page in pages) + in_use == sweep,
    )
    spec.lemma(
        "What is listed or offered is a slot that exists.",
        Cat(~valid | (entry[:16] < params.slots) for valid, entry in listed + offered).all(),
    )
    spec.lemma(
        "The free list's pointers are as far apart as it is long.",
        (produce < depth)
        & (consume < depth)
        & (level <= depth)
        & (produce == Mux(consume + level >= depth, consume + level - depth, consume + level)),
    )
    spec.lemma("An entry waits a cycle at most while the output is empty.", level <= 1, when=~out_valid)
    spec.lemma("The sweep stops.", sweep <= params.slots)
    spec.reach("Every slot is in use.", in_use == params.slots)
    return spec
