"""What NVIDIA's driver says of its GPUs."""

from __future__ import annotations

import subprocess

__all__ = ["FIELDS", "ask_gpus", "ask_links"]

FIELDS = (
    "pci.bus_id",
    "name",
    "driver_version",
    "persistence_mode",
    "pstate",
    "clocks.sm",
    "clocks.max.sm",
    "clocks_event_reasons.active",
    "utilization.gpu",
    "temperature.gpu",
    "power.draw",
    "enforced.power.limit",
    "memory.total",
    "memory.used",
)
"""Asked of each GPU, none of which tells one GPU of a kind from another. MHz, %, °C, W and MiB."""

OLD_NAMES = {"clocks_event_reasons.active": "clocks_throttle_reasons.active"}
ANSWER_S = 30.0


def ask_gpus() -> str | None:
    """Ask for `FIELDS`: CSV with a heading, a line for each GPU."""
    for fields in (FIELDS, tuple(OLD_NAMES.get(field, field) for field in FIELDS)):
        said = _run(f"--query-gpu={','.join(fields)}", "--format=csv,nounits")
        if said is not None:
            return said
    return None


def ask_links() -> str | None:
    """Ask for the state of NVLink: a heading for each GPU, then a line for each link."""
    return _run("nvlink", "--status")


def _run(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["nvidia-smi", *arguments], capture_output=True, text=True, timeout=ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 and done.stdout.strip() else None
