"""A slot is in the list that its life says; lives are counted."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Signal, Value

from cuelight_rtl.slots import Life

from .core import HELD, CoreState, number, one_of

__all__ = ["list_claims"]


def list_claims(core: CoreState, where: Array[Signal], used: Array[Signal]) -> None:
    spec, hand, lists = core.spec, core.hand, core.hand.lists
    m, nowhere = spec.m, lists.count
    with spec.part("lists"):
        expected = []
        for slot, (owner, life) in enumerate(zip(core.owners, core.lives, strict=True)):
            its = Signal(range(nowhere + 1), name=f"list_of_{slot}")
            listed = core.of_group("listed", owner.group).bit_select(owner.seat[: core.params.seat_bits], 1)
            m.d.comb += its.eq(nowhere)
            # Who goes to a second list is in none between the halves of its step.
            with m.If(~(core.second & (hand.slot == slot))):
                with m.If(life == Life.QUEUED):
                    m.d.comb += its.eq(core.waiting_list(owner.tier, owner.group))
                with m.If((life == Life.SEATED) & listed):
                    m.d.comb += its.eq(core.prefilling_list(owner.tier, owner.group))
                with m.If(life == Life.RETIRED):
                    m.d.comb += its.eq(lists.retired)
            expected.append(its)
        spec.claim(
            "QUEUED is who is in its tier's queue, RETIRED who is in the retirement FIFO; a SEATED request is in its"
            " tier's prefilling list exactly if its seat is listed; nobody else is in a list.",
            [where[slot] == expected[slot] for slot in core.slots],
            when=[core.swept] * len(core.slots),
        )
        spec.lemma(
            "A life is one that there is.",
            [life <= max(Life) for life in core.lives],
        )
        spec.lemma(
            "The sweep has cleared the rows that it has passed.",
            [
                (Value.cast(owner.life) == Life.FREE) | (hand.slots.sweep <= slot)
                for slot, owner in enumerate(core.owners)
            ],
            when=[~core.swept] * len(core.slots),
        )
        spec.claim(
            "An automatic request has a lane group that there is.",
            [owner.group < core.params.lanes for owner in core.owners],
            when=[one_of(life, *HELD) for life in core.lives],
        )
        spec.claim(
            "Who is SEATED has a seat of its group, and the seat map knows it.",
            [
                core.of_group("seated", owner.group).bit_select(owner.seat[: core.params.seat_bits], 1)
                & (owner.seat < core.params.seats)
                & (core.sits_in(owner.group, owner.seat) == slot)
                for slot, owner in enumerate(core.owners)
            ],
            when=[life == Life.SEATED for life in core.lives],
        )
        pairs = [(group, seat) for group in core.groups for seat in core.chairs]
        sitting = [core.sits_in(group, seat) for group, seat in pairs]
        spec.claim(
            "A seat that is taken has one request, which is SEATED there.",
            [
                (core.of_slot(core.lives, slot) == Life.SEATED)
                & (core.field("group", slot) == group)
                & (core.field("seat", slot) == seat)
                for slot, (group, seat) in zip(sitting, pairs, strict=True)
            ],
            when=[hand.seats[group].seated[seat] for group, seat in pairs],
        )

        def living(life: Life, group: int) -> Value:
            return number(
                Cat((its == life) & (owner.group == group) for its, owner in zip(core.lives, core.owners, strict=True))
            )

        spec.claim(
            "QUEUED requests of a group are counted.",
            [seats.queued_count == living(Life.QUEUED, group) for group, seats in enumerate(hand.seats)],
        )
        spec.claim(
            "Requests PARKED without a seat are counted.",
            [seats.aside_count == living(Life.PARKED, group) for group, seats in enumerate(hand.seats)],
        )
        spec.claim(
            "A slot is in use exactly if it is not FREE.",
            [used[slot] == (life != Life.FREE) for slot, life in enumerate(core.lives)],
        )
        spec.claim(
            "While a request is QUEUED, SEATED or PARKED there are four stages at least.",
            core.core.stage_count >= 4,
            when=Cat(one_of(life, *HELD) for life in core.lives).any(),
        )
        spec.claim("STAGE_COUNT is no more than there are.", core.core.stage_count <= core.params.stages)
        if core.params.lanes > 1:
            spec.claim(
                "A group whose lane is another's has no request, and is not resetting.",
                [seats.vacant & ~seats.resetting for seats in hand.seats],
                when=[core.pipelines.absorbed[group] for group in core.groups],
            )
        spec.claim(
            "REQ_STATUS.active counts the slots that are not FREE.",
            core.core.active == number(Cat(life != Life.FREE for life in core.lives)),
        )
