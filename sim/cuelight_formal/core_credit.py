"""KV blocks stay with their request from its admission to its retirement."""

from __future__ import annotations

from amaranth.hdl import Array, Mux

from cuelight_rtl.params import TIERS

from . import credit
from .core import HELD, CoreState, one_of

__all__ = ["credit_claims"]


def credit_claims(core: CoreState) -> None:
    spec, hand = core.spec, core.hand
    mine = spec.some("mine_slot", core.params.slot_bits)
    floor = Array(core.core.kv_floor[tier] for tier in range(TIERS))[core.request.attr.tier]
    for group, seats in enumerate(hand.seats):
        with spec.part("promises"), spec.about(f"Group {group}"):
            holds, kept, others = credit.promised(spec, seats, hand.slot == mine, floor)
        held = [
            one_of(life, *HELD) & (owner.group == group) for life, owner in zip(core.lives, core.owners, strict=True)
        ]
        blocks = [Mux(has, work.blocks, 0) for has, work in zip(held, core.works, strict=True)]
        with spec.part("credit"):
            spec.claim(
                f"A request of group {group} holds what it took when admitted, while it is QUEUED, SEATED or PARKED.",
                (holds == core.of_slot(held, mine)) & (kept == core.of_slot(blocks, mine)),
            )
            rest = [Mux(mine == slot, 0, blocks[slot]) for slot in core.slots]
            spec.claim(f"So do the others of group {group}.", others == sum(rest[1:], start=rest[0]))
            spec.lemma(
                f"Blocks of group {group} are free or held.", seats.blocks_free + kept + others == seats.blocks_total
            )
