"""What is known of a seat fits its request."""

from __future__ import annotations

from amaranth.hdl import Cat

from cuelight_rtl.params import TIERS
from cuelight_rtl.slots import Life

from .core import CoreState

__all__ = ["seat_claims"]


def seat_claims(core: CoreState) -> None:
    spec, hand = core.spec, core.hand
    with spec.part("seats"):
        spec.claim(
            "Who sits decodes exactly if no rows are left to prefill.",
            [
                core.of_group("decoding", owner.group).bit_select(owner.seat[: core.params.seat_bits], 1)
                == (work.rest == 0)
                for owner, work in zip(core.owners, core.works, strict=True)
            ],
            when=[life == Life.SEATED for life in core.lives],
        )
        spec.claim(
            "The seats of a tier are those of its requests.",
            [
                spec.inside(f"seats_{group}.tier_{tier}")
                == Cat(
                    seats.seated[seat] & (core.field("tier", core.sits_in(group, seat)) == tier) for seat in core.chairs
                )
                for group, seats in enumerate(hand.seats)
                for tier in range(TIERS)
            ],
        )
        spec.claim("Who is to be parked sits.", [(seats.parking & ~seats.seated) == 0 for seats in hand.seats])
        spec.claim(
            "Only seats below SEATS are taken.",
            [(seats.seated & ~Cat(seats.limit > seat for seat in core.chairs)) == 0 for seats in hand.seats],
        )
        spec.claim(
            "ROWS is SEATS + 16 at least, and 512 at most.",
            [
                (seats.limit >= 1)
                & (seats.limit <= core.params.seats)
                & (seats.rows >= seats.limit + 16)
                & (seats.rows <= 512)
                for seats in hand.seats
            ],
        )
