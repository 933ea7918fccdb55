"""Some cocotb benches on both simulators; `make sim` runs all of them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from benches.run import run


@pytest.mark.parametrize(
    ("simulator", "name"),
    [
        ("verilator", "completions"),
        pytest.param(
            "icarus",
            "manual",
            marks=pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog is not installed"),
        ),
    ],
)
def test_benches_pass(simulator: str, name: str, tmp_path: Path) -> None:
    result = run(simulator, name, tmp_path)
    assert result.passed
    assert not result.failed, result.log.read_text()


def test_the_guide_shows_a_bench_as_it_is() -> None:
    folder = Path(__file__).parents[2]
    (shown,) = re.findall(r"^```python\n(.*?)^```", (folder / "docs" / "verification.md").read_text(), re.DOTALL | re.M)
    assert shown in (folder / "sim" / "benches" / "bench_cancel.py").read_text()


def test_a_bench_that_fails_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With sizes that the simulated device does not have, the golden model must disagree with it."""
    monkeypatch.setattr("benches.run.asdict", lambda params: {"slots": 128, "seats": 16, "lanes": 2, "stages": 8})
    result = run("verilator", "manual", tmp_path, only="free_to_running")
    assert result.failed == ["free_to_running_to_waiting_to_running_to_free"]
    assert "Divergence" in result.log.read_text()
