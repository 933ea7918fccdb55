"""A VIP's time to first token beside best-effort requests, on the RTL with a lane whose pace is a formula.

The same question as in `tiers.py`, in the device's own time: it comes out the same on any machine, and tells what
stages, depth and seats do. A pass takes the lane 30 ms + 2.5 ms a row (about what the CPU lane takes on two cores for
the default model), in equal parts for each layer stage.

Predicted before the first run: idle 30 + 36 × 2.5 = 120 ms. Beside 32 rows that decode (110 ms a pass) while one pass
is alive: up to 110 ms of waiting, then a shared pass of 68 rows, 200 ms: 310 ms, 2.6 times. With a second pass and a
free seat: up to two stages of 18 ms at depth 2, 1.3 times, and one at depth 1, 1.15 times; in a full house as before.
"""

from __future__ import annotations

from random import Random

from cuelight import regmap
from cuelight.tiers import TIERS
from cuelight_rtl.params import Params
from cuelight_sim.workload import Arrival, Pace, Workload
from policies import quantile

BAR = 2.0
PACE = Pace(base_us=30_000, row_us=2_500, reach_us=0)
DECODING, QUEUED, VIPS = 32, 200, 100
VIP_ROWS, VIP_TOKENS = 36, 1
VIPS_FROM_US, VIP_EVERY_US = 3e6, 1.1e6
CROWD_TOKENS = 1100
"""Of a best-effort request: more than fit in the time of all VIPs."""
CROWD = {"nobody": 0, f"{DECODING} best-effort": DECODING, f"{DECODING + QUEUED} best-effort": DECODING + QUEUED}
SETTINGS = ((6, 2, 0), (6, 2, 1), (6, 1, 1), (30, 2, 1))
"""Layer stages, depth, seats beyond 32 that best-effort requests leave free."""


class StagedWorkload(Workload):
    """VIPs beside a crowd, with passes that take time in each of several layer stages.

    Parameters
    ----------
    crowd
        Best-effort requests, there from the start.
    layer_stages, depth, seat_floor
        Settings of the device.
    """

    def __init__(self, crowd: int, layer_stages: int, depth: int, seat_floor: int) -> None:
        self._layers = range(2, 2 + layer_stages)
        settings = {
            regmap.CONTROL + regmap.Control.STAGE_COUNT: self._layers.stop + 1,
            regmap.LANE + regmap.Lane.DEPTH: depth,
            regmap.GROUP + regmap.Group.SEATS: DECODING + seat_floor,
            regmap.TIER + TIERS["best-effort"] * regmap.TIER_STRIDE + regmap.Tier.SEAT_FLOOR: seat_floor,
        }
        random = Random(1)
        vips = [VIPS_FROM_US + VIP_EVERY_US * (at + random.random() / 2) for at in range(VIPS)]
        arrivals = [Arrival(0.0, TIERS["best-effort"], 8, CROWD_TOKENS) for _ in range(crowd)]
        arrivals += [Arrival(at_us, TIERS["vip"], VIP_ROWS, VIP_TOKENS) for at_us in vips]
        super().__init__(Params(lanes=1), arrivals, settings, PACE)

    def run(self) -> None:
        """Until every VIP has its first token; the crowd has no end."""
        vips = self.outcomes[-VIPS:]
        while not all(outcome.tokens_us for outcome in vips):
            self._model.run_until_idle()
            if self._model.poll_valid & 1:
                self._serve()
            else:
                self._rest_until(self._arrivals[self._arrived].at_us)

    def _serve(self) -> None:
        head = self._model.read(regmap.POLL + regmap.Poll.DISPATCH, width=8)
        sequence, stage = head & 0xFFFF_FFFF, head >> 32 & 0xFF
        decode, chunks, last = self._read_record()
        if stage in self._layers:
            rows = len(decode) + sum(rows for _, _, rows in chunks)
            self._rest_until(self.now_us + (PACE.base_us + rows * PACE.row_us) / len(self._layers))
        finished = 0
        if stage == self._layers.stop:
            for seat in (*decode, *last):
                outcome = self.outcomes[self._by_seat[seat]]
                outcome.tokens_us.append(self.now_us)
                finished |= (len(outcome.tokens_us) == outcome.arrival.tokens) << seat
        self._complete(sequence, finished)


def main() -> None:
    """Print a line for each setting and condition."""
    pace = f"a pass takes {PACE.base_us / 1000:g} ms + {PACE.row_us / 1000:g} ms a row (assumed)"
    print(f"{pace}; {VIPS} VIPs of {VIP_ROWS} rows, TTFT in ms")
    print(f"{'':40}{'beside':20}{'median':>8}{'p99':>8}{'× idle':>8}")
    for layer_stages, depth, seat_floor in SETTINGS:
        title = f"{layer_stages} layer stages, depth {depth}, {seat_floor} left free"
        idle_ms = 0.0
        for name, crowd in CROWD.items():
            workload = StagedWorkload(crowd, layer_stages, depth, seat_floor)
            workload.run()
            waits = [outcome.first_us / 1000 for outcome in workload.outcomes[-VIPS:]]
            p99 = quantile(waits, 0.99)
            idle_ms = idle_ms or p99
            line = f"{title:40}{name:20}{quantile(waits, 0.5):8.0f}{p99:8.0f}{p99 / idle_ms:8.2f}"
            print(f"{line}   bar {BAR:g}: {'held' if p99 <= BAR * idle_ms else 'MISSED'}" if crowd else line)
            title = ""


if __name__ == "__main__":
    main()
