"""What holds for all tests."""

import os

import pytest

# Before torch is loaded, in workers of xdist too: threads that spin while they wait starve the other worker's.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report each place where rounding decided between two tokens (tests record them as the property `ties`)."""
    reports = {
        report.nodeid: list(value)
        for kind in ("passed", "failed")
        for report in terminalreporter.getreports(kind)
        for name, value in report.user_properties
        if name == "ties"
    }
    places = [f"{test}: {tie}" for test, ties in reports.items() for tie in ties]
    if reports:
        terminalreporter.write_line(f"{len(reports)} tests compared tokens; rounding decided in {len(places)} places")
    for place in places:
        terminalreporter.write_line(f"  {place}")
