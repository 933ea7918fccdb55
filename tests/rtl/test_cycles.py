"""Cycle counts and state that the project promises (design §12), at 1,024 slots all in use."""

from __future__ import annotations

import pytest

from cuelight_rtl.account import state_bits
from cuelight_rtl.params import Params
from cuelight_sim.cycles import Cycles, measure


@pytest.fixture(scope="module")
def cycles() -> Cycles:
    return measure(Params())


def test_a_command_shows_in_req_status_within_6_cycles(cycles: Cycles) -> None:
    assert cycles.command_to_status <= 6


def test_an_admission_takes_at_most_8_cycles_when_sustained(cycles: Cycles) -> None:
    assert cycles.manual_admission <= 8
    assert cycles.automatic_admission <= 8


def test_the_next_dispatch_follows_a_completion_within_12_cycles(cycles: Cycles) -> None:
    assert 0 < cycles.done_to_dispatch <= 12


def test_a_loop_point_was_measured_with_and_without_turnover(cycles: Cycles) -> None:
    assert 0 < cycles.loop_to_dispatch < cycles.turnover_to_dispatch


def test_the_default_configuration_holds_at_most_32_kib() -> None:
    assert 0 < sum(state_bits(Params()).values()) <= 32 * 1024 * 8
