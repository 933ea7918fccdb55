"""Runs benches and gathers what came out."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cuelight_rtl.params import Params

from . import top
from .bench import REPORT, SIZES
from .build import build

__all__ = ["BENCHES", "Result", "run"]

SMALL = Params(slots=64, seats=16, lanes=2, stages=8)
DEEP = Params(slots=64, seats=16, lanes=1, stages=128)
_TIMEOUT_S = 1800
"""For one simulation; benches have timeouts in simulated time."""

BENCHES: dict[str, Params] = {
    "registers": SMALL,
    "bytes": SMALL,
    "pages": SMALL,
    "manual": SMALL,
    "rejects": SMALL,
    "pops": SMALL,
    "stages": DEEP,
    "automatic": SMALL,
    "completions": SMALL,
    "cancel": SMALL,
    "resets": SMALL,
    "trace": SMALL,
    "stalls": SMALL,
    "random": SMALL,
}
"""Modules of this package, without `bench_`, and the sizes they run with."""


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
        How often each goal of `cuelight_sim.coverage` was reached.
    """

    log: Path
    passed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    cycles: int = 0
    coverage: Counter[str] = field(default_factory=Counter)


def run(simulator: str, name: str, folder: Path, *, seed: int = 1, waves: bool = False, only: str | None = None) -> Result:
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
    waves
        Write waveforms: FST from Icarus, VCD from Verilator.
    only
        Regular expression for the names of benches that run; all where it is left out.

    Raises
    ------
    RuntimeError
        The simulation could not be built, or broke off.
    """
    params = BENCHES[name]
    made = build(simulator, params, waves=waves)
    folder.mkdir(parents=True, exist_ok=True)
    log, report, results = folder / f"{name}.log", folder / f"{name}.jsonl", folder / f"{name}.xml"
    report.unlink(missing_ok=True)
    picture = folder / f"{name}.{'fst' if simulator == 'icarus' else 'vcd'}"
    os.environ["SIM_CMD_PREFIX"] = f"timeout {_TIMEOUT_S}"
    try:
        made.runner.test(
            test_module=f"benches.bench_{name}",
            hdl_toplevel=top.TOP,
            hdl_toplevel_lang="verilog",
            build_dir=made.folder,
            test_dir=folder,
            results_xml=str(results),
            log_file=log,
            seed=seed,
            waves=waves,
            test_filter=only,
            timescale=("1ns", "1ns"),
            extra_env={SIZES: json.dumps(asdict(params)), REPORT: str(report)},
            **_wave_arguments(simulator, picture) if waves else {},
        )
    except (RuntimeError, SystemExit):
        if not results.exists():
            raise RuntimeError(f"the simulation broke off: {log.read_text()[-4000:]}") from None
    return _gather(Result(log), results, report)


def _wave_arguments(simulator: str, picture: Path) -> dict[str, list[str]]:
    if simulator == "icarus":
        return {"plusargs": [f"+dumpfile_path={picture}"]}
    return {"test_args": ["--trace-file", str(picture)]}


def _gather(result: Result, results: Path, report: Path) -> Result:
    for case in ET.parse(results).iter("testcase"):
        failed = case.find("failure") is not None or case.find("error") is not None
        (result.failed if failed else result.passed).append(case.attrib["name"])
    for line in report.read_text().splitlines() if report.exists() else ():
        told = json.loads(line)
        result.cycles += told["cycles"]
        result.coverage.update(told["coverage"])
    return result
