"""What a group is doing."""

from __future__ import annotations

from .group import Group

__all__ = ["SITUATIONS", "situation", "unsure"]

SITUATIONS = ("resetting", "forming", "loop point", "no pass", "dispatch out", "between dispatches")


def unsure(group: Group) -> bool:
    """Nothing tells yet whether the group's loop point has ended, and so who is in a pass and who is parking."""
    return group.loop is not None and group.loop.over


def situation(group: Group) -> str:
    """What a group is doing, one of `SITUATIONS`; a loop point that may be over counts as over."""
    if group.resetting:
        return "resetting"
    if group.forming is not None:
        return "forming"
    if group.loop is not None and not group.loop.over:
        return "loop point"
    if len(group.alive) == (group.loop is not None):
        return "no pass"
    return "dispatch out" if any(lane.dispatches for lane in group.lanes) else "between dispatches"
