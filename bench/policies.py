"""What settings of the policy do to each tier, on the RTL with a lane whose pace is a formula (not a measurement)."""

from __future__ import annotations

from cuelight_sim.crowd import NAMES, PARAMS, SETTINGS, arrivals, simulate
from cuelight_sim.workload import Pace


def main() -> None:
    """Print TTFT, ITL and end of each tier, one line a setting and tier."""
    pace = Pace()
    print(
        f"{len(arrivals())} requests, {PARAMS.seats} seats; a pass takes the lane {pace.base_us / 1000:g} ms "
        f"+ {pace.row_us:g} µs a row + {pace.reach_us:g} µs a prompt row and 1,024 positions before it (assumed)"
    )
    print(f"{'':30}{'':8}{'TTFT, ms':>16}{'ITL, ms':>16}{'done':>8}{'pauses':>8}{'passes':>8}")
    print(f"{'settings':30}{'tier':8}{'median':>8}{'p99':>8}{'median':>8}{'p99':>8}{'s':>8}")
    for name, settings in SETTINGS.items():
        workload = simulate(settings)
        for tier, title in enumerate(NAMES):
            outcomes = [outcome for outcome in workload.outcomes if outcome.arrival.tier == tier]
            if not outcomes:
                continue
            first = [outcome.first_us / 1000 for outcome in outcomes]
            gaps = [gap / 1000 for outcome in outcomes for gap in outcome.gaps_us]
            done_s = max(outcome.tokens_us[-1] for outcome in outcomes) / 1e6
            line = f"{name if tier == 0 else '':30}{title:8}{quantile(first, 0.5):8.0f}{quantile(first, 0.99):8.0f}"
            line += f"{quantile(gaps, 0.5):8.1f}{quantile(gaps, 0.99):8.1f}{done_s:8.1f}"
            print(line + (f"{workload.pauses:8d}{len(workload.passes):8d}" if tier == 0 else ""))


def quantile(values: list[float], share: float) -> float:
    """The smallest value that at least ``share`` of them do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


if __name__ == "__main__":
    main()
