"""Cycle counts and state that the project promises (design §12), at 1,024 slots all in use."""

from __future__ import annotations

from dataclasses import astuple

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
    assert 0 < cycles.done_to_dispatch_ahead <= 12


def test_a_second_pass_follows_the_dispatch_under_way_within_12_cycles(cycles: Cycles) -> None:
    for second in cycles.second_passes:
        assert 0 < second.done_to_dispatch <= 12
        assert 0 < second.command_to_form <= second.command_to_form_in_full_house


def test_a_loop_point_of_another_group_does_not_delay_a_dispatch(cycles: Cycles) -> None:
    assert cycles.done_beside_loop_point == cycles.done_to_dispatch


def test_a_loop_point_takes_at_most_32_cycles_and_8_for_each_seat_that_changes(cycles: Cycles) -> None:
    assert {point.changed for point in cycles.loop_points} >= {0, 1, 2, 8, 16, 32}
    assert any(point.chunks and point.joined for point in cycles.loop_points)
    late = [point for point in cycles.loop_points if not 0 < point.cycles <= 32 + 8 * point.changed]
    assert not late


def test_a_loop_point_costs_the_same_however_many_stay(cycles: Cycles) -> None:
    houses = sorted({point.seats for point in cycles.loop_points})
    few, many = (
        {
            (point.left, point.joined, point.cycles)
            for point in cycles.loop_points
            if point.seats == seats and not point.chunks
        }
        for seats in houses
    )
    assert few == many


def test_a_loop_point_costs_the_same_however_many_prompts_are_parked(cycles: Cycles) -> None:
    seats = max(point.seats for point in cycles.loop_points)
    without = {astuple(point) for point in cycles.loop_points if point.seats == seats}
    assert cycles.beside_parked
    assert {astuple(point) for point in cycles.beside_parked} <= without


def test_the_default_configuration_holds_at_most_32_kib() -> None:
    assert 0 < sum(state_bits(Params()).values()) <= 32 * 1024 * 8
