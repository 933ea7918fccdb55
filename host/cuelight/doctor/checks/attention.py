"""Which kernel computes attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cuelight.doctor.finding import Finding, Severity
from cuelight.doctor.machine import Machine

__all__ = ["check_attention"]

SLOW = "attention_math"


def check_attention(machine: Machine) -> Iterator[Finding]:
    """What ran when the engine's attention was called, on the CPU lane: this version has no lane on a GPU."""
    kernels = machine.attention.get("kernels")
    for dtype, found in kernels.items() if isinstance(kernels, dict) else ():
        if not isinstance(found, dict):
            continue
        said = " and ".join(f"{kernel} ({', '.join(works)})" for kernel, works in _by_kernel(found).items())
        slow = any(str(kernel).startswith(SLOW) for kernel in found.values())
        if slow:
            yield Finding(
                "attention",
                Severity.WARNING,
                "system",
                f"Attention in {dtype} on the CPU lane has no kernel of its own: {said}.",
                "It is put together from products and a softmax, and writes all scores to memory.",
                "Install the version of torch that constraints.txt names.",
            )
        else:
            yield Finding("attention", Severity.OK, "system", f"Attention in {dtype} on the CPU lane: {said}.")


def _by_kernel(found: dict[str, Any]) -> dict[str, list[str]]:
    works: dict[str, list[str]] = {}
    for work, kernel in found.items():
        works.setdefault(str(kernel), []).append(work)
    return works
