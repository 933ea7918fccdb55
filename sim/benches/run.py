"""Runs benches and gathers what came out."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

from cuelight_rtl.params import Params

from .bench import REPORT, SIZES, STEPS
from .build import build
from .lines import Branch, count_lines

__all__ = ["BENCHES", "SMALL", "Result", "run"]


class Design(NamedTuple):
    """What is simulated: one of `sockets.SOCKETS`, with a device of this size in it."""

    params: Params
    socket: str = "bench"


SMALL = Design(Params(slots=64, seats=16, lanes=2, stages=8))
DEEP = Design(Params(slots=64, seats=32, lanes=1, stages=128))
WIDE = Design(Params(slots=64, seats=16, lanes=8, stages=32))
PCIE = Design(Params(slots=64, seats=16, lanes=2, stages=8), "pcie")
# For each simulation; benches have timeouts in simulated time.
os.environ.setdefault("SIM_CMD_PREFIX", "timeout 1800")

BENCHES: dict[str, Design] = {
    "lanes": WIDE,
    "random": SMALL,
    "lives": SMALL,
    "cancel": SMALL,
    "moves": SMALL,
    "resets": SMALL,
    "rejects": SMALL,
    "second": SMALL,
    "registers": SMALL,
    "completions": SMALL,
    "bytes": SMALL,
    "situations": SMALL,
    "pages": SMALL,
    "pipeline": SMALL,
    "trace": SMALL,
    "automatic": SMALL,
    "stages": DEEP,
    "stalls": SMALL,
    "manual": SMALL,
    "pictures": SMALL,
    "chunks": SMALL,
    "entries": DEEP,
    "pops": SMALL,
    "policy": SMALL,
    "pcie_registers": PCIE,
    "pcie_refusals": PCIE,
    "pcie_resets": PCIE,
    "pcie_cycles": PCIE,
    "pcie_push": PCIE,
    "pcie_completions": PCIE,
    "pcie_losses": PCIE,
    "pcie_field": PCIE,
    "pcie_requests": PCIE,
    "pcie_faults": PCIE,
    "pcie_driver": PCIE,
}
"""Modules of this package, without `bench_`, and what they run on; the longest first."""


@dataclass
class Result:
    """What a module's benches came to.

    Parameters
    ----------
    log
        Output of the simulation.
    passed, failed
        Names of benches.
    cycles
        Clock cycles of all that passed.
    coverage
        How often each bin of `cuelight_sim.coverage` was reached.
    lines
        How often each branch of the Verilog was taken, where that was counted.
    """

    log: Path
    passed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    cycles: int = 0
    coverage: Counter[str] = field(default_factory=Counter)
    lines: Counter[Branch] = field(default_factory=Counter)


def run(
    simulator: str,
    name: str,
    folder: Path,
    *,
    seed: int = 1,
    steps: int = 150,
    waves: bool = False,
    lines: bool = False,
    only: str | None = None,
) -> Result:
    """Run the benches of one module.

    Parameters
    ----------
    simulator
        One of `build.SIMULATORS`.
    name
        One of `BENCHES`.
    folder
        Where log, waveforms and results go.
    seed
        Makes every choice of the benches repeatable.
    steps
        Of random benches, what they do of each.
    waves
        Write waveforms: FST from Icarus, VCD from Verilator.
    lines
        Count how often lines of the Verilog run; Verilator only.
    only
        Regular expression for the names of benches that run; all where it is left out.

    Raises
    ------
    RuntimeError
        The simulation could not be built, or broke off.
    """
    params, socket = BENCHES[name]
    made = build(simulator, socket, params, waves=waves, lines=lines)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}-{seed}"
    log, report, results = file.with_suffix(".log"), file.with_suffix(".jsonl"), file.with_suffix(".xml")
    counts = file.with_suffix(".dat")
    report.unlink(missing_ok=True)
    environment = {SIZES: json.dumps(asdict(params)), REPORT: str(report), STEPS: str(steps)}
    if socket == "pcie":
        # Models of hard blocks take packets for numbers; memory that was never read is unknown to Icarus.
        environment["COCOTB_RESOLVE_X"] = "random"
    try:
        made.runner.test(
            test_module=f"benches.bench_{name}",
            hdl_toplevel=socket,
            hdl_toplevel_lang="verilog",
            build_dir=made.folder,
            test_dir=folder,
            results_xml=str(results),
            log_file=log,
            seed=seed,
            waves=waves,
            test_filter=only,
            timescale=("1ns", "1ns"),
            extra_env=environment,
            plusargs=[f"+dumpfile_path={file.with_suffix('.fst')}", f"+verilator+coverage+file+{counts}"],
            test_args=["--trace-file", str(file.with_suffix(".vcd"))] if simulator == "verilator" and waves else [],
        )
    except (RuntimeError, SystemExit):
        if not results.exists():
            raise RuntimeError(f"the simulation broke off: {log.read_text()[-4000:]}") from None
    result = Result(log)
    _gather(result, results, report)
    if lines:
        result.lines = count_lines(counts, made.source)
    return result


def _gather(result: Result, results: Path, report: Path) -> None:
    for case in ET.parse(results).iter("testcase"):
        failed = case.find("failure") is not None or case.find("error") is not None
        (result.failed if failed else result.passed).append(case.attrib["name"])
    for line in report.read_text().splitlines() if report.exists() else ():
        told = json.loads(line)
        result.cycles += told["cycles"]
        result.coverage.update(told["coverage"])
