"""What no file of Linux tells: programs that are asked, and tries. None harms anything; each ends in time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from cuelight.doctor.probes import link, nvidia

__all__ = ["run_probe"]

CUDA_S, TORCH_S = 120.0, 300.0


def run_probe(name: str, address: str = "") -> str | None:
    """Run a probe on this machine.

    Parameters
    ----------
    name
        A key of `PROBES`.
    address
        PCI address of the function it is about, for those that are about one.

    Returns
    -------
    str or None
        What it printed; None where there is nothing to ask.
    """
    return PROBES[name](address)


def _apart(module: str, timeout_s: float) -> Callable[[str], str | None]:
    # In a process of its own: a GPU in a bad state can hang or end whoever asks it.
    def probe(address: str) -> str | None:
        command = [sys.executable, "-m", f"cuelight.doctor.probes.{module}", address]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout or None if done.returncode == 0 else None

    return probe


PROBES: dict[str, Callable[[str], str | None]] = {
    "link": link.sample,
    "nvidia-smi": lambda _: nvidia.ask_gpus(),
    "nvlink": lambda _: nvidia.ask_links(),
    "cuda": _apart("cuda", CUDA_S),
    "attention": _apart("attention", TORCH_S),
}
