"""What PARK and CREDIT do (docs/device.md §3)."""

from __future__ import annotations

from collections.abc import Callable

from .group import Group
from .slots import Request, SlotState

__all__ = ["credit", "park"]


def park(group: Group, request: Request) -> list[tuple[int, Callable[[], None]]]:
    """Effect codes that a PARK may show, each with what it does."""

    def leave_queue() -> None:
        group.queues[request.tier].remove(request)
        group.parked.append(request)
        request.parked = True
        group.slots.state[request.slot] = SlotState.PARKED

    def use_credit() -> None:
        request.credit = False

    def begin() -> None:
        request.parking = True

    if request.seat is None:
        if request.parked:
            return [(3, lambda: None)]
        return [(4, use_credit)] if request.credit else [(1, leave_queue)]
    if request.parked or request.parking:
        return [(3, lambda: None)]
    if group.loop is not None and group.loop.over and request.stepped and group.loop.run.sampling >> request.seat & 1:
        # Nothing tells whether the loop point, by which it is parking, has ended yet.
        return [(3, begin), (2, begin)]
    return [(2, begin)]


def credit(group: Group, request: Request) -> tuple[int, Callable[[], None]]:
    """Effect code of a CREDIT, and what it does."""

    def queue_again() -> None:
        group.parked.remove(request)
        group.queues[request.tier].appendleft(request)
        request.parked = False
        group.slots.state[request.slot] = SlotState.QUEUED

    def go_on() -> None:
        request.parked = False
        if group.forming is not None:
            group.forming.about_to_change()
        if request.rows_left:
            group.prefilling[request.tier].appendleft(request)

    def remember() -> None:
        request.credit = True

    if request.parked:
        return (1, queue_again) if request.seat is None else (2, go_on)
    return (4, lambda: None) if request.credit else (3, remember)
