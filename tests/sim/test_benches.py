"""Some cocotb benches on Icarus; `make sim` runs all of them, on Verilator too."""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path

import pytest
from find_libpython import find_libpython

from benches.run import run
from cuelight_mutation.faults import FAULTS

# Verilator takes minutes to build a simulation on a small machine, Icarus seconds.
icarus = pytest.mark.skipif(
    shutil.which("iverilog") is None or find_libpython() is None,
    reason="Icarus Verilog or Python's shared library is not installed; `make sim` installs both",
)


@icarus
def test_benches_pass(tmp_path: Path) -> None:
    result = run("icarus", "manual", tmp_path)
    assert result.passed
    assert not result.failed, result.log.read_text()


def test_the_guide_shows_a_bench_as_it_is() -> None:
    folder = Path(__file__).parents[2]
    shown, pasted = re.findall(
        r"^```python\n(.*?)^```", (folder / "docs" / "verification.md").read_text(), re.DOTALL | re.M
    )
    assert shown in (folder / "sim" / "benches" / "bench_cancel.py").read_text()
    assert ast.parse(pasted)


def test_the_fault_of_the_guide_is_one_that_is_planted() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "verification.md").read_text()
    ((taken, file),) = re.findall(r"sed -i 's/(.*?)//' rtl/cuelight_rtl/(\w+\.py)", guide)
    assert [fault for fault in FAULTS if fault.file == file and fault.old.replace(taken, "") == fault.new]


@icarus
def test_a_bench_that_fails_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With sizes that the simulated device does not have, the golden model must disagree with it."""
    monkeypatch.setattr("benches.run.asdict", lambda params: {"slots": 128, "seats": 16, "lanes": 2, "stages": 8})
    result = run("icarus", "manual", tmp_path, only="free_to_running")
    assert result.failed == ["free_to_running_to_waiting_to_running_to_free"]
    assert "Divergence" in result.log.read_text()
