"""A loop point cycle by cycle: who is in it, from one run of the compiled RTL and one of Amaranth's simulator."""

from __future__ import annotations

from dataclasses import dataclass

from cuelight import regmap
from cuelight.regmap import CommitKind, PageSchedAttr, PageSchedCmd
from cuelight_rtl.model import Commit, Model, Request
from cuelight_rtl.params import Params
from cuelight_sim.states import steps_of, trace_states

__all__ = ["PARAMS", "Run", "run"]

PARAMS = Params(slots=64, seats=16, lanes=1, stages=8)
NAMES = "ABC"
_STAGES = 4
_SEATS = 2


@dataclass(frozen=True, slots=True)
class Run:
    """From the acceptance of a pass's last BATCH_DONE to the next pass's first dispatch in the poll head.

    ``states`` has the core's state in each cycle; cycles count from the acceptance.
    """

    states: list[str]
    commits: list[Commit]


def run() -> Run:
    """Two seats: A decodes and finishes, B's prompt ends and it decodes from now on, C waits and takes A's seat.

    Raises
    ------
    RuntimeError
        The compiled RTL and the simulated one differ.
    """
    model = Model(PARAMS)
    requests: list[tuple[int, Request]] = []

    def write(offset: int, value: int, width: int = 4) -> None:
        model.write(offset, value, width)
        shift = offset % 8
        strobe = (1 << width) - 1 << shift
        requests.append((model.accepted_at, Request(offset - shift, True, value << 8 * shift, strobe)))

    def admit(slot: int, rows: int) -> None:
        write(regmap.PAGE + regmap.Page.SCHED_ATTR, PageSchedAttr(automatic=1, rows=rows).pack(), 8)
        write(regmap.PAGE + regmap.Page.SCHED_CMD, PageSchedCmd(id=1 << 16 | slot).pack(), 8)
        model.run_until_idle()

    def complete(sequence: int, finished: int = 0) -> None:
        model.run_until_idle()
        entry = regmap.COMPLETION + sequence % 16 * regmap.COMPLETION_ENTRY_STRIDE
        if finished:
            write(entry + regmap.Completion.FINISHED, finished)
        write(entry + regmap.Completion.BATCH_DONE, sequence)

    model.run_until_idle()
    write(regmap.CONTROL + regmap.Control.STAGE_COUNT, _STAGES)
    write(regmap.GROUP + regmap.Group.SEATS, _SEATS)
    admit(slot=0, rows=8)
    admit(slot=1, rows=24)
    admit(slot=2, rows=100)
    # A's prompt alone, then A's next token beside B's prompt.
    for sequence in range(1, 6):
        complete(sequence)
    complete(6, finished=0b01)
    accepted = model.accepted_at
    model.run_until_idle()
    states, commits = trace_states(PARAMS, requests, model.cycles)
    if commits != steps_of(model.commits):
        raise RuntimeError("the compiled RTL and the simulated one differ")
    end = next(
        commit.cycle + 1 for commit in model.commits if commit.cycle > accepted and commit.kind == CommitKind.DISPATCH
    )
    return Run(
        states[accepted : end + 1],
        [commit._replace(cycle=commit.cycle - accepted) for commit in model.commits if accepted <= commit.cycle <= end],
    )
