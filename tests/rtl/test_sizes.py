"""The RTL at the ends of its ranges; `python -m cuelight_sim.campaign` runs such sizes in lockstep."""

from __future__ import annotations

import pytest

from cuelight_rtl.account import state_bits
from cuelight_rtl.params import Params

KIB = 8 * 1024


@pytest.mark.parametrize(
    ("params", "kib"),
    [
        (Params(slots=64, seats=16, lanes=1, stages=4), (6, 8)),
        (Params(slots=4096, seats=16, lanes=1, stages=128), (76, 84)),
        (Params(slots=64, seats=256, lanes=2, stages=128), (8, 14)),
        (Params(slots=64, seats=16, lanes=8, stages=8), (9, 12)),
    ],
    ids=lambda value: value.tag if isinstance(value, Params) else None,
)
def test_every_size_elaborates_and_grows_by_what_it_holds(params: Params, kib: tuple[int, int]) -> None:
    low, high = kib
    assert low * KIB < sum(state_bits(params).values()) < high * KIB


def test_state_grows_with_slots_alone_as_their_rows_do() -> None:
    few, many = (sum(state_bits(Params(slots=slots, seats=16, lanes=1, stages=8)).values()) for slots in (64, 128))
    row = (many - few) / 64
    assert 130 < row < 170
