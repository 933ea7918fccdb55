"""Do links run as fast and as wide as both their ends can?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from cuelight.doctor.finding import Finding, Severity
from cuelight.doctor.function import Function, LinkState
from cuelight.doctor.machine import Machine
from cuelight.pci.express import SPEEDS_GTS

__all__ = ["check_links"]

SEAT = (
    "Take the card out and put it in again, without a riser or cable between; try another slot; look in the manual "
    "whether the slot shares lanes, and in the firmware whether it is set to fewer or slower ones."
)


def check_links(machine: Machine) -> Iterator[Finding]:
    """Each link between a board or GPU and the root.

    One look says little: GPUs slow their link down while idle. So a low speed is a warning only where it was seen under
    load. Lanes do not come and go, so one look is enough for them.
    """
    for lower, upper in machine.links(*machine.looked_at):
        if not lower.config.absent:
            yield from _check(machine, lower, upper)


def _check(machine: Machine, lower: Function, upper: Function | None) -> Iterator[Finding]:
    now, most = lower.link, _most(lower, upper)
    if now is None or most is None or not now.width:
        return
    where = f"to {upper.address}" if upper else "upwards"
    samples = machine.samples.get(lower.address, ())
    seen = [*samples] or [now]
    fine = True
    if len(kinds := Counter(str(one) for one in samples)) > 1:
        fine = False
        yield Finding(
            "link-steady",
            Severity.WARNING,
            lower.address,
            f"Its link {where} changed under load: {', '.join(kinds)}.",
            "Nothing passes while a link is trained anew, for up to milliseconds.",
            f"{SEAT} If it still changes, hold its speed: setpci -s {(upper or lower).address} CAP_EXP+30.w=20:20, "
            "once it runs at full speed.",
        )
    width = max(one.width for one in seen)
    if width < most.width:
        fine = False
        yield Finding(
            "link-width",
            Severity.WARNING,
            lower.address,
            f"Its link {where} has {width} lanes, but both ends have {most.width}.",
            "Each lane that is missing takes bandwidth; it is a bad contact as a rule, which makes errors too.",
            SEAT,
        )
    speed = max(one.speed_gts or 0 for one in seen)
    if most.speed_gts and speed < most.speed_gts:
        fine = False
        yield _slow(lower, upper, speed, most.speed_gts, where, bool(samples))
    if fine:
        loaded = "under load" if samples else "in one look"
        yield Finding("link", Severity.OK, lower.address, f"Its link {where} runs at {most}, {loaded}.")
    own = lower.link_most
    if own is not None and own.width > most.width:
        yield Finding(
            "link-slot",
            Severity.NOTE,
            lower.address,
            f"It has {own.width} lanes, but what it is plugged into has {most.width}.",
            "It can't be faster here.",
            "Use a wider slot if the machine has one.",
        )


def _slow(lower: Function, upper: Function | None, speed: float, most: float, where: str, loaded: bool) -> Finding:
    ends = [one for one in (upper, lower) if one is not None and one.express is not None]
    held = [one for one in ends if one.express and one.express.speed_fixed]
    capped = [one for one in ends if one.express and (one.express.target_speed_gts or most) < most]
    remedy = SEAT
    if capped:
        code = next((code for code, gts in SPEEDS_GTS.items() if gts == most), 1)
        remedy = (
            f"{capped[0].address} is set to no more than that: set it higher in the firmware, or by setpci -s "
            f"{capped[0].address} CAP_EXP+30.w={code}:f, then train anew with setpci -s {(upper or lower).address} "
            "CAP_EXP+10.w=20:20."
        )
    elif held:
        remedy = (
            f"{held[0].address} holds its speed (Link Control 2, bit 5): setpci -s {held[0].address} CAP_EXP+30.w=0:20."
        )
    what = f"Its link {where} runs at {speed:g} GT/s, but both ends can do {most:g}"
    if loaded:
        return Finding(
            "link-speed",
            Severity.WARNING,
            lower.address,
            f"{what}, also under load.",
            "Every read and write takes longer, and copies have less bandwidth.",
            remedy,
        )
    return Finding(
        "link-speed",
        Severity.NOTE,
        lower.address,
        f"{what}.",
        "That was one look at an idle link, and many devices slow theirs down while idle.",
        f"Look again under load: run cuelight doctor as root, on this machine. If it is so then: {remedy}",
    )


def _most(lower: Function, upper: Function | None) -> LinkState | None:
    """What both ends are capable of."""
    mine = lower.link_most
    theirs = upper.link_most if upper else mine
    if mine is None or theirs is None:
        return None
    speeds = [one.speed_gts for one in (mine, theirs) if one.speed_gts]
    return LinkState(min(speeds, default=None), min(mine.width, theirs.width))
