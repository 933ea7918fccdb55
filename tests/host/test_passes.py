"""Several passes at once, from the driver to the timeline."""

from __future__ import annotations

import itertools

from cuelight import Device
from cuelight.lanes.types import Dispatch
from cuelight.regmap import LANE, LANE_STRIDE, Lane
from cuelight.timeline import Timeline, build_timeline

from .checks import WAIT_S, assert_at_rest, until
from .lane import STAGES, InstantLane, expected_tokens


def rows_by_bars(timeline: Timeline) -> dict[int, int]:
    """Rows of each pass, counted from what its members ran in its first layer stage."""
    bars = [bar for request in timeline.requests for bar in request.bars if bar.stage == 2]
    return {one.number: sum(bar.rows for bar in bars if bar.pass_number == one.number) for one in timeline.passes}


def test_a_second_pass_shows_inside_the_first() -> None:
    with Device.open("twin", lanes=1, slots=64, seats=16, context=256, blocks=16) as device:
        device.configure(stages=STAGES, kv_blocks=40, block_positions=16)
        device.trace()
        urgent = []

        def gate(dispatch: Dispatch) -> None:
            """While a pass decodes a prompt of a higher tier comes; the stage ends when its pass is formed."""
            if dispatch.pass_number == 2 and dispatch.stage == 2:
                urgent.append(device.submit([7] * 20, 3, tier=0))
                until(lambda: device.status().counters.passes == 3)

        lane = InstantLane(device, gate=gate)
        lane.start()
        slow = device.submit([5, 6], 4, tier=2)
        slow_tokens = [token.token for token in slow.tokens(WAIT_S)]
        urgent_tokens = [token.token for token in urgent[0].tokens(WAIT_S)]
        assert_at_rest(device)
        events = device.trace()
        lane.stop()
    assert slow_tokens == expected_tokens([5, 6], 4)
    assert urgent_tokens == expected_tokens([7] * 20, 3)
    timeline = build_timeline(events, STAGES)
    first, second = timeline.passes[1:3]
    assert (first.decode_rows, first.chunks, second.decode_rows, second.chunks) == (1, 0, 0, 1)
    assert first.stages[0].start_ns < second.stages[0].start_ns
    assert [run.stage for run in second.stages] == [1, 2, 3]
    assert rows_by_bars(timeline) == {one.number: one.rows for one in timeline.passes}
    assert [one.decode_rows for one in timeline.passes[3:5]] == [1, 2]


def test_lanes_of_a_pipeline_share_a_groups_passes() -> None:
    with Device.open("twin", lanes=2, slots=64, seats=16, context=256, blocks=16) as device:
        device.configure(stages=STAGES, kv_blocks=40, block_positions=16)
        device.trace()
        device.transport.write32(LANE + LANE_STRIDE + Lane.FIRST_STAGE, STAGES - 1)
        device.transport.write32(LANE + Lane.PIPELINE, 2)
        # Between lanes a pipeline hands on what it computed; here each finds all it needs in the prompt.
        lanes = [InstantLane(device, lane) for lane in range(2)]
        for lane in lanes:
            lane.start()
        requests = [device.submit([turn, turn + 1], 1) for turn in range(8)]
        for turn, request in enumerate(requests):
            assert [token.token for token in request.tokens(WAIT_S)] == expected_tokens([turn, turn + 1], 1)
        assert_at_rest(device)
        events = device.trace()
        for lane in lanes:
            lane.stop()
    timeline = build_timeline(events, STAGES)
    for one in timeline.passes:
        by_lane = {
            lane: [run.stage for run in runs] for lane, runs in itertools.groupby(one.stages, lambda run: run.lane)
        }
        assert by_lane == {0: [1, 2], 1: [1, STAGES - 1]}
    assert rows_by_bars(timeline) == {one.number: one.rows for one in timeline.passes}
