"""Names for the state of a request, and what a write says."""

from __future__ import annotations

from typing import NamedTuple

from cuelight import regmap
from cuelight.regmap import PageSchedCmd

from ..golden import Golden
from ..lockstep import Write
from ..pages import ByteLatch
from ..slots import Request

__all__ = ["PHASES", "POSTURES", "Told", "phase", "posture", "register_of", "told"]

PHASES = ("prefilling", "decoding")
POSTURES = ("plain", "with a credit", "parking", "parking with a credit", "parked", "cancelled")


def phase(request: Request) -> str:
    """One of `PHASES`: whether it has rows left to prefill."""
    return "prefilling" if request.rows_left else "decoding"


def posture(request: Request) -> str:
    """One of `POSTURES`."""
    if request.marked:
        return "cancelled"
    if request.parked:
        return "parked"
    if request.parking:
        return "parking with a credit" if request.credit else "parking"
    return "with a credit" if request.credit else "plain"


class Told(NamedTuple):
    """What the latest write of a producer page says."""

    page: int
    register: int
    id: int
    stage: int
    """Target stage, of a command that is complete with this write; else 0."""
    complete: bool


def told(golden: Golden, write: Write) -> Told | None:
    """What a write to a producer page says, the golden model being as before it; None: it says nothing whole."""
    if write.offset >= regmap.IDENTITY:
        return None
    number, register = divmod(write.offset, regmap.PAGE_STRIDE)
    if register == regmap.Page.SCHED_CMD:
        latch = golden.pages[number].command
        whole = ByteLatch(latch.value, latch.got)
        whole.store(write.data, write.strobe)
        command = PageSchedCmd.unpack(whole.value)
        return Told(number, register, command.id, command.stage, True) if write.strobe and whole.whole else None
    if write.strobe & 0xF == 0xF:
        return Told(number, register, write.data & 0xFFFF_FFFF, 0, False)
    return None


def register_of(write: Write) -> dict[int, int]:
    """The 32-bit words that a write has whole, by offset."""
    return {
        write.offset + 4 * half: write.data >> 32 * half & 0xFFFF_FFFF
        for half in range(2)
        if write.strobe >> 4 * half & 0xF == 0xF
    }
