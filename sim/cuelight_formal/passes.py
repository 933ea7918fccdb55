"""Members of a pass are those of its record, and it is alive from FORM to its end."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Mux, Signal, Value

from cuelight_rtl.params import Params
from cuelight_rtl.passes import Pass

from .spec import Spec

__all__ = ["members", "promised"]


def promised(spec: Spec, room: Pass, suffix: str = "") -> Signal:
    """What the core promises a pass; returns whether it is being formed."""
    m, view = spec.m, room.view
    forming = Signal(name=f"forming{suffix}")
    looping = spec.inside(f"pass{suffix}.looping" if suffix else "looping")
    with m.If(room.plan):
        m.d.sync += forming.eq(1)
    with m.Elif(room.form | room.drop):
        m.d.sync += forming.eq(0)
    decoding = sum(bit for bit in room.decoding)
    spec.promise(
        "One thing happens to a pass at a time.",
        room.plan + room.add + room.form + room.loop + room.end + room.drop <= 1,
    )
    spec.promise("A pass is planned that is neither alive nor being formed.", ~(forming | room.alive), when=room.plan)
    spec.promise("PLAN counts the seats that decode.", room.decode_rows == decoding, when=room.plan)
    spec.promise("Entries and FORM come after PLAN.", forming, when=room.add | room.form)
    spec.promise(
        "An entry is of a seat that is no member yet, and there is a place for it.",
        ~room.full & ~view.members.bit_select(room.chunk.seat, 1),
        when=room.add,
    )
    spec.promise("Every plan becomes a pass: at FORM it has rows.", view.rows.any(), when=room.form)
    spec.promise("Only a chunk, which has rows, is the last.", room.chunk.rows != 0, when=room.add & room.chunk.last)
    spec.promise("A pass has 512 rows at most.", view.rows + room.chunk.rows <= 512, when=room.add)
    spec.promise("A loop point is of a pass alive.", room.alive & ~looping, when=room.loop)
    spec.promise("It ends once.", looping, when=room.end)
    spec.promise(
        "Seats are reported finished while it is alive, before its loop point.",
        room.alive & ~looping & ~room.loop,
        when=room.finish,
    )
    return forming


def members(params: Params) -> Spec:
    """A pass beside a ghost that knows how far it is, and follows one seat, whichever."""
    room = Pass(params)
    spec = Spec(room)
    m, view = spec.m, room.view
    forming = promised(spec, room)
    alive, looping = Signal(), Signal()
    seat = spec.some("seat", params.seat_bits)
    decodes = room.chunk.rows == 0
    mine = room.add & (room.chunk.seat == seat)

    decode, prompt, sampled, finished = Signal(), Signal(), Signal(), Signal()
    decode_rows, chunk_rows, entries = Signal(range(params.seats + 1)), Signal(10), Signal(range(params.entries + 1))
    with m.If(room.plan):
        m.d.sync += [decode.eq(room.decoding.bit_select(seat, 1)), prompt.eq(0), sampled.eq(0)]
        m.d.sync += [finished.eq(0), decode_rows.eq(room.decode_rows), chunk_rows.eq(0), entries.eq(0)]
    with m.If(room.add):
        m.d.sync += [entries.eq(entries + 1), chunk_rows.eq(chunk_rows + room.chunk.rows)]
        m.d.sync += decode_rows.eq(decode_rows + decodes)
    with m.If(mine):
        m.d.sync += [decode.eq(decode | decodes), prompt.eq(prompt | ~decodes), sampled.eq(room.chunk.last)]
    with m.If(room.form):
        m.d.sync += [alive.eq(1)]
    with m.If(room.finish & room.finish_seats.bit_select(seat, 1)):
        m.d.sync += finished.eq(1)
    with m.If(room.loop):
        m.d.sync += looping.eq(1)
    with m.If(room.end | room.drop):
        m.d.sync += [alive.eq(0), looping.eq(0)]

    def bit(bitmap: Value) -> Value:
        return bitmap.bit_select(seat, 1)

    member = decode | prompt
    spec.claim("Members are the seats of the decode bitmap and of the entries.", bit(view.members) == member)
    spec.claim("The decode bitmap is PLAN's, and the seats that entries bind.", bit(room.decode) == decode)
    spec.claim("A pass is alive from FORM to the end of its loop point.", room.alive == alive)
    spec.claim(
        "Its members are busy while it is alive, up to its loop point.", bit(room.busy) == (alive & ~looping & member)
    )
    spec.claim("Nobody is reported finished who is no member.", (room.leaving & ~view.members) == 0)
    spec.claim(
        "In its loop point those leave that were reported finished, and are members.",
        bit(room.leaving) == (finished & member),
        when=looping,
    )
    spec.claim(
        "Those have sampled that decode, and those with a last chunk.",
        bit(room.sampling) == (decode | sampled),
        when=looping,
    )
    spec.claim(
        "Nobody leaves or samples outside of a loop point.", ~(room.leaving | room.sampling).any(), when=~looping
    )
    spec.claim("Rows are those of the decode bitmap and of all entries.", view.rows == decode_rows + chunk_rows)
    spec.claim(
        "A seat in the decode bitmap has a row each.",
        decode_rows == sum(room.decode[each] for each in range(params.seats)),
    )
    spec.claim(
        "Entries are counted, and never more than there are.", (view.count == entries) & (entries <= params.entries)
    )
    spec.claim(
        "Some row samples exactly if somebody decodes or has a last chunk.",
        view.samples == spec.inside("sampled").any(),
    )
    spec.claim(
        "A record stands from FORM to the next PLAN.",
        Cat(view.number, view.turned, view.members, room.decode, view.rows, view.count, view.samples)
        == spec.past(Cat(view.number, view.turned, view.members, room.decode, view.rows, view.count, view.samples)),
        when=spec.past(~room.plan & ~room.add) & spec.past(Const(1)),
    )
    spec.claim(
        "Each PLAN turns the record buffer over.", view.turned != spec.past(view.turned), when=spec.past(room.plan)
    )
    spec.claim("A pass alive has rows.", view.rows != 0, when=alive)
    spec.lemma("The pass loops as the ghost does.", (spec.inside("looping") == looping) & (alive | ~looping))
    spec.lemma("Who has sampled is kept.", bit(spec.inside("sampled")) == (decode | sampled))
    spec.lemma("So is who was reported finished.", bit(spec.inside("finished")) == (finished & member))
    spec.lemma("Reports are of members.", (spec.inside("finished") & ~view.members) == 0)
    spec.lemma("Who decodes is a member.", (room.decode & ~view.members) == 0)
    spec.lemma("A pass is not formed while it is alive.", ~(forming & alive))
    spec.lemma("Only members sample.", (spec.inside("sampled") & ~view.members) == 0)
    spec.lemma("A chunk that is last is one.", prompt, when=sampled)
    spec.lemma("No report before it is alive.", ~finished, when=forming)
    spec.reach("A member with a chunk is reported finished.", Mux(prompt, room.leaving.bit_select(seat, 1), 0))
    return spec
