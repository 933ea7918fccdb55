"""Crowds on the RTL, with a lane whose pace is a formula."""

from __future__ import annotations

import pytest

from cuelight import regmap
from cuelight_rtl.params import Params
from cuelight_sim.workload import Arrival, Pace, PassRun, Workload

PARAMS = Params(slots=64, seats=16, lanes=1, stages=8)
PACE = Pace(base_us=1000.0, row_us=10.0, reach_us=100.0)
SLACK_US = 5.0
"""What the device itself takes."""


def test_a_pass_takes_what_the_pace_says() -> None:
    workload = Workload(PARAMS, [Arrival(500.0, 0, 8, 3)], {}, PACE)
    workload.run()
    times = workload.outcomes[0].tokens_us
    assert times == pytest.approx([1580.0, 2590.0, 3600.0], abs=SLACK_US)
    assert workload.outcomes[0].first_us == pytest.approx(1080.0, abs=SLACK_US)


def test_a_prompts_later_rows_take_longer() -> None:
    settings = {regmap.GROUP + regmap.Group.ROWS: 512}
    workload = Workload(PARAMS, [Arrival(0.0, 0, 2048, 1)], settings, PACE)
    workload.run()
    assert [run.chunks for run in workload.passes] == [((0, 512 * part, 512),) for part in range(4)]
    took = [run.end_us - run.start_us for run in workload.passes]
    assert took == pytest.approx([6120.0 + 512 * 50.0 * part for part in range(4)], abs=SLACK_US)


def test_who_arrives_while_a_pass_runs_joins_the_next_one() -> None:
    workload = Workload(PARAMS, [Arrival(0.0, 0, 8, 4), Arrival(1500.0, 0, 8, 1)], {}, PACE)
    workload.run()
    assert [(run.decode, len(run.chunks)) for run in workload.passes] == [(0, 1), (1, 0), (1, 1), (1, 0)]


def test_a_full_house_makes_room_for_a_higher_tier() -> None:
    crowd = [*(Arrival(0.0, 3, 8, 6) for _ in range(2)), Arrival(2500.0, 0, 8, 2)]
    workload = Workload(PARAMS, crowd, {regmap.GROUP + regmap.Group.SEATS: 2}, PACE)
    workload.run()
    assert workload.pauses == 1
    assert [len(outcome.tokens_us) for outcome in workload.outcomes] == [6, 6, 2]
    assert max(workload.outcomes[0].gaps_us) > 2 * max(workload.outcomes[1].gaps_us)


def test_a_run_repeats_exactly() -> None:
    def passes() -> list[PassRun]:
        workload = Workload(PARAMS, [Arrival(100.0 * number, number % 4, 50, 5) for number in range(40)], {})
        workload.run()
        return workload.passes

    assert passes() == passes()


def test_a_higher_tiers_prompt_is_read_between_the_layers_of_a_pass() -> None:
    crowd = [Arrival(0.0, 3, 8, 6), Arrival(1500.0, 0, 8, 1)]
    workload = Workload(PARAMS, crowd, {}, PACE, layers=5)
    workload.run()
    # The second pass of the chat ends before the one that it overtook: 1,080 µs after layer 3, at 1,686 µs.
    assert workload.outcomes[1].tokens_us == pytest.approx([2766.0], abs=2 * SLACK_US)
    assert workload.outcomes[0].gaps_us[0] == pytest.approx(1010.0 + 1080.0, abs=2 * SLACK_US)
    assert [(run.decode, len(run.chunks)) for run in workload.passes[:3]] == [(0, 1), (0, 1), (1, 0)]


def test_more_layers_than_stages_are_refused() -> None:
    with pytest.raises(ValueError, match="6 layers make more stages"):
        Workload(PARAMS, [], {}, PACE, layers=6)


def test_more_arrivals_than_slots_are_refused() -> None:
    with pytest.raises(ValueError, match="60 arrivals are more"):
        Workload(PARAMS, [Arrival(0.0, 0, 8, 1)] * 60, {})
