"""What the scheduler's policy can be told, beyond the sizes of a lane group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuelight.arguments import check_range
from cuelight.errors import InvalidArgument
from cuelight.regmap import IdentityCapabilities

__all__ = ["Cost", "Tier", "complete_tiers", "open_tiers"]

_MOST_ROWS = 512
_MOST = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class Tier:
    """What a latency tier is granted in every lane group; nothing unless told otherwise.

    Parameters
    ----------
    min_seats
        Seats that it gets before higher tiers get more, and keeps when higher ones want them.
    min_rows
        Rows of a pass that the prompts of higher tiers leave it while it has prompts too.
    kv_floor
        KV blocks that its own admissions leave free, so for other tiers.
    seat_floor
        Seats that must stay free when one beyond `min_seats` is given to it: where higher tiers are to find a seat at
        once, and not at the end of a pass.
    """

    min_seats: int = 0
    min_rows: int = 0
    kv_floor: int = 0
    seat_floor: int = 0


@dataclass(frozen=True, slots=True)
class Cost:
    """What a pass may cost, in whatever unit; without limit unless told otherwise.

    A chunk of n prompt rows that begins at a position costs n (c0 + c1 (position // 1024)). Chunks shrink, down to
    8 rows, and wait for later passes until the whole pass is within its budget; decode rows are all run.

    Parameters
    ----------
    budget
        Cost of a pass at most, 32 bits.
    decode_row
        Cost of a decode row, 16 bits.
    c0, c1
        Cost of a prompt row, and what 1024 positions before it add, 16 bits each.
    """

    budget: int = _MOST
    decode_row: int = 0
    c0: int = 0
    c1: int = 0

    def check(self) -> None:
        """Check that the device has such values.

        Raises
        ------
        InvalidArgument
            One is out of range.
        """
        check_range("budget", self.budget, 0, _MOST)
        for name in ("decode_row", "c0", "c1"):
            check_range(name, getattr(self, name), 0, 0xFFFF)


def complete_tiers(tiers: Sequence[Tier], capabilities: IdentityCapabilities) -> tuple[Tier, ...]:
    """Check tiers, the highest first, and add those left out.

    Raises
    ------
    InvalidArgument
        A value is out of range, or there are too many.
    """
    if len(tiers) > capabilities.tiers:
        raise InvalidArgument(f"The device has {capabilities.tiers} tiers, not {len(tiers)}; leave some out.")
    for number, tier in enumerate(tiers):
        check_range(f"min_seats of tier {number}", tier.min_seats, 0, capabilities.seats)
        check_range(f"min_rows of tier {number}", tier.min_rows, 0, _MOST_ROWS)
        check_range(f"kv_floor of tier {number}", tier.kv_floor, 0, 0xFFFF)
        check_range(f"seat_floor of tier {number}", tier.seat_floor, 0, capabilities.seats)
    return (*tiers, *[Tier()] * (capabilities.tiers - len(tiers)))


def open_tiers(tiers: int, seats: int, kv_blocks: int, most_blocks: int) -> tuple[Tier, ...]:
    """Tiers that leave higher ones a way in: one seat and a sixteenth of the KV blocks for each tier above.

    A house of less than 8 seats has none to spare, and a request of `most_blocks` is never kept out for good.
    """
    spare_blocks = kv_blocks - most_blocks
    return tuple(
        Tier(kv_floor=min(above * kv_blocks // 16, spare_blocks), seat_floor=above if seats >= 8 else 0)
        for above in range(tiers)
    )
