"""Room on the device, kept in step with its own account: slots, and KV blocks of each lane group."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from cuelight.blocks import NO_TOKENS, BlockPool, Lease
from cuelight.errors import CuelightError, DeviceBusy, DeviceFull, NeverFits, NoKvCredit
from cuelight.regmap import TIER_COUNT

__all__ = ["Room"]

_AHEAD = -1


class Room:
    """Slots and KV blocks, given out first come, first served within a tier, higher tiers first.

    What a tier takes leaves its KV floor free, as the device demands. A request that was lost with its lane or its
    device has room promised until it is admitted again or ends.

    The device returns a request's KV credit when it retires and its slot when its retirement entry is popped. The
    driver gives both back here after the pop, so what is free here is free on the device.

    Parameters
    ----------
    slots : int
        Slots of the device.
    groups : int
        Lane groups; they have no blocks until `resize`.
    promised : callable
        Group and KV blocks of each request that will take room again, so nobody else may have it.
    """

    def __init__(self, slots: int, groups: int, promised: Callable[[], Sequence[tuple[int, int]]] = lambda: ()) -> None:
        self._changed = threading.Condition()
        self._promised = promised
        self._slots = slots
        self._free_slots = slots
        self._pools = [BlockPool(0) for _ in range(groups)]
        self._lines: list[list[tuple[int, int]]] = [[] for _ in range(groups)]
        self._arrivals = itertools.count()
        self._floors = [0] * TIER_COUNT
        self._errors: list[CuelightError | None] = [None] * groups
        self._closed: CuelightError | None = None

    @property
    def free_slots(self) -> int:
        """Slots nobody holds."""
        return self._free_slots

    def free_blocks(self, group: int) -> int:
        """KV blocks of `group` that the next requests can have: its credit."""
        return self._pools[group].free

    def cached_blocks(self, group: int) -> int:
        """KV blocks of `group` that later requests with the same beginning can share."""
        return self._pools[group].cached

    def blocks(self, group: int) -> int:
        """KV blocks of `group`."""
        return self._pools[group].count

    def waiting(self, tier: int) -> int:
        """Requests of a tier that wait for room, in all groups together."""
        with self._changed:
            return sum(ticket[0] == tier for line in self._lines for ticket in line)

    def block_positions(self, group: int) -> int:
        """Positions of a KV block of `group`."""
        return self._pools[group].positions

    def resize(self, group: int, blocks: int, block_positions: int = 1) -> None:
        """Set the KV blocks of a group that holds none; nothing is cached afterwards.

        Raises
        ------
        DeviceBusy
            Some of the group's blocks are held.
        """
        with self._changed:
            if self._pools[group].free != self._pools[group].count:
                raise DeviceBusy(f"Lane group {group} has live requests; wait for them before changing its KV blocks.")
            self._pools[group] = BlockPool(blocks, block_positions)
            self._changed.notify_all()

    def take_slot(self, timeout_s: float) -> None:
        """Take a slot for a manual request, waiting up to `timeout_s` seconds for one.

        Raises
        ------
        DeviceFull
            None became free in time.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._closed or self._free_slots > len(self._promised()), timeout_s):
                raise self._full()
            self.check_open()
            self._free_slots -= 1

    def set_floors(self, floors: Sequence[int]) -> None:
        """Set the KV blocks that what a tier takes leaves free in its group, by tier."""
        with self._changed:
            self._floors[: len(floors)] = floors
            self._changed.notify_all()

    def take(
        self,
        group: int,
        tier: int,
        blocks: int,
        timeout_s: float,
        tokens: NDArray[np.int32] = NO_TOKENS,
        *,
        again: bool = False,
    ) -> Lease:
        """Take a slot and `blocks` KV blocks of `group`, waiting up to `timeout_s` seconds for both.

        Blocks that hold the beginning of `tokens` already are among them where there are such. Whoever had room
        before and takes it `again` comes before all who wait; no floor and no promise is in the way.

        Raises
        ------
        DeviceFull, NeverFits, NoKvCredit
            Slots, or KV blocks, did not become free in time, or there can never be as many.
        CuelightError
            What the group or the room was closed with.
        """
        deadline = time.monotonic() + timeout_s
        with self._changed:
            line = self._lines[group]
            ticket = (_AHEAD if again else tier, next(self._arrivals))
            line.append(ticket)
            try:
                while True:
                    self.check(group)
                    pool, floor = self._pools[group], 0 if again else self._floors[tier]
                    if blocks + floor > pool.count:
                        raise self._never(group, tier, blocks, floor)
                    promised = () if again else self._promised()
                    leave = floor + sum(count for other, count in promised if other == group)
                    full = self._free_slots <= len(promised)
                    if min(line) == ticket and not full and (lease := pool.take(blocks, tokens, leave)):
                        self._free_slots -= 1
                        return lease
                    if (left_s := deadline - time.monotonic()) <= 0:
                        raise self._full() if full else self._no_credit(group, tier, blocks, floor)
                    self._changed.wait(left_s)
            finally:
                line.remove(ticket)
                self._changed.notify_all()

    def keeps_floor(self, group: int, tier: int) -> bool:
        """Whether what is free in `group` is the floor of `tier` at least, so that a lease of the tier still holds."""
        return self._pools[group].free >= self._floors[tier]

    def is_current(self, group: int, lease: Lease) -> bool:
        """Whether the lane still has what it had when the lease was taken."""
        return self._pools[group].era == lease.era

    def forget(self, group: int) -> None:
        """Let nobody share what was written up to now: the group's lane has lost it."""
        with self._changed:
            self._pools[group].forget()

    def publish(self, group: int, lease: Lease, tokens: NDArray[np.int32]) -> None:
        """Let later requests share the whole blocks of `tokens`, which the lease's lane has written."""
        with self._changed:
            self._pools[group].publish(lease, tokens)

    def give(self, group: int, lease: Lease, keep: bool = True) -> None:
        """Return a slot and its KV blocks; `keep`: what they hold may be shared later."""
        with self._changed:
            self._pools[group].give(lease, keep)
            self._free_slots += 1
            self._changed.notify_all()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Let nobody take anything between a request's loss of its room and the promise of it."""
        with self._changed:
            yield

    def break_promise(self) -> None:
        """Look again at who waits: something that was promised is wanted no more."""
        with self._changed:
            self._changed.notify_all()

    def give_slot(self) -> None:
        """Return a manual request's slot."""
        with self._changed:
            self._free_slots += 1
            self._changed.notify_all()

    def check(self, group: int) -> None:
        """Raise what the group, or all of the room, was closed with."""
        if error := self._closed or self._errors[group]:
            raise error.with_traceback(None)

    def check_open(self) -> None:
        """Raise what the room was closed with."""
        if self._closed:
            raise self._closed.with_traceback(None)

    def close_group(self, group: int, error: CuelightError) -> None:
        """Raise `error` at whoever waits for the group's room, now and later; nothing stays cached."""
        with self._changed:
            self._pools[group].forget()
            self._errors[group] = self._errors[group] or error
            self._changed.notify_all()

    def close(self, error: CuelightError) -> None:
        """Raise `error` at whoever waits for room, now and later."""
        with self._changed:
            self._closed = self._closed or error
            self._changed.notify_all()

    def _full(self) -> DeviceFull:
        return DeviceFull(
            f"All {self._slots} slots of the device are in use; wait longer for one, or cancel a request."
        )

    def _no_credit(self, group: int, tier: int, blocks: int, floor: int) -> NoKvCredit:
        pool = self._pools[group]
        ahead = " and other requests wait" if len(self._lines[group]) > 1 else ""
        leaves = f" and leaves {floor} to others than tier {tier}" if floor else ""
        return NoKvCredit(
            f"Lane group {group} has {pool.free} of {pool.count} KV blocks free{ahead}, and this request needs "
            f"{blocks}{leaves}; wait longer, or ask for fewer new tokens."
        )

    def _never(self, group: int, tier: int, blocks: int, floor: int) -> NeverFits:
        leaves = f", of which tier {tier} leaves {floor} to others" if floor else ""
        return NeverFits(
            f"The request needs {blocks} KV blocks and lane group {group} has {self._pools[group].count} in all"
            f"{leaves}; configure more, or ask for fewer new tokens."
        )
