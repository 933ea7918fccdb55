"""The scheduler in plain Python, written from docs/device.md and not from the RTL.

The model decides nothing that the device is free to decide: it replays the commits, demands that each one was
legal in its state, and foretells what registers and records show.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from cuelight.regmap import CommitKind

from .bus import Bus
from .decision import Decision
from .group import Group
from .lane import Lane
from .pages import ProducerPage
from .registers import Registers, Word
from .state import Sizes, State
from .steps import Divergence, Event, Step

if TYPE_CHECKING:
    from cuelight_rtl.model import Commit

__all__ = ["Golden"]

_OFFER_GRACE = 16
"""Cycles for which a page that just lost its offer need not yet go before higher pages."""
_REST_GRACE = 2
"""Cycles of rest that may go unnoticed."""

_LANE_KINDS = frozenset(
    {
        CommitKind.DISPATCH,
        CommitKind.COMPLETE,
        CommitKind.COMPLETE_IGNORED,
        CommitKind.TAKEN,
        CommitKind.REOFFERED,
    }
)
_PAGE_KINDS = frozenset({CommitKind.OFFER, CommitKind.UNOFFER})
_GROUP_KINDS = frozenset(
    {
        CommitKind.SEAT,
        CommitKind.RETIRE,
        CommitKind.LOOP_POINT,
        CommitKind.ADVANCE,
        CommitKind.PLAN,
        CommitKind.CHUNK,
        CommitKind.FORM,
        CommitKind.GROUP_READY,
        CommitKind.PARKED,
        CommitKind.PAUSE,
    }
)
_BUS_KINDS = frozenset(CommitKind) - _GROUP_KINDS - _PAGE_KINDS - {CommitKind.DISPATCH}
"""Made by a write, not by background work (but a RETIRE also follows the cancel of a queued request)."""
_INNER_KINDS = frozenset({CommitKind.ADVANCE, CommitKind.CHUNK, CommitKind.FORM})


class Golden(State):
    """A device of the given sizes, just after reset.

    Parameters
    ----------
    sizes
        Slots, seats, lanes and stages.
    nonce
        What BOOT_NONCE reads.
    ns_per_cycle
        How far TIME_NS moves in a cycle, from 0 at reset; None: registers that show times are not foretold.
    """

    def __init__(self, sizes: Sizes, nonce: int = 1, ns_per_cycle: int | None = None) -> None:
        super().__init__(sizes)
        self.nonce = nonce
        self.ns_per_cycle = ns_per_cycle
        self._bus = Bus(self)
        self._registers = Registers(self)
        self._resting_since: list[int | None] = [0] * sizes.lanes
        """Cycle since which each group rests."""
        self._passed_over = [0] * sizes.lanes
        """Units of work done for other groups while this one had some."""

    def write(self, offset: int, data: int, strobe: int = 0xFF) -> None:
        """Notes a write that the device has accepted.

        Parameters
        ----------
        offset
            Byte offset in BAR0, a multiple of 8.
        data
            64 bits.
        strobe
            A bit for each byte of ``data``.

        Raises
        ------
        Divergence
            The write before has not had the effect it must have.
        """
        self._bus.write(offset, data, strobe)

    def written(self) -> None:
        """Notes that the last write has had its whole effect.

        Raises
        ------
        Divergence
            It has not.
        """
        self._bus.written()

    # ------------------------------------------------------------------------------------------- commits

    def commit(self, commit: Commit) -> None:
        """Checks a commit against the state and applies it.

        Raises
        ------
        Divergence
            The step is not legal now.
        """
        event = Event(CommitKind(commit.kind), commit.lane, commit.stage, commit.id, commit.detail)
        if commit.cycle < self.cycle:
            raise Divergence(f"{event} of cycle {commit.cycle} came after one of cycle {self.cycle}")
        self.cycle = commit.cycle
        self._check_port(commit.port, event)
        steps = self._legal(event)
        step = next((step for step in steps if step.event == event), None)
        if step is None:
            legal = ", ".join(str(step.event) for step in steps) or "nothing of the kind"
            raise Divergence(f"cycle {commit.cycle}: {event} is not legal; legal now: {legal}")
        if event.kind in _GROUP_KINDS and self._bus.following is None:
            self._take_turn(self.groups[event.lane], event)
        if event.kind in _BUS_KINDS:
            self._bus.transaction.duty = None
        if commit.port == 0:
            self._bus.following = None
            for group in self.groups:
                group.dispatching.unseen.clear()
        step.effect()
        self._note_rest()
        if not self.trace.record(event, self.cycle):
            self.counters.trace_lost += 1

    def _note_rest(self) -> None:
        """Ends counts of decision cycles where a group rested; a rest that was too short may have passed unnoticed."""
        for group in self.groups:
            since = self._resting_since[group.index]
            if group.at_rest:
                if since is None:
                    self._resting_since[group.index] = self.cycle
            elif since is not None:
                self._resting_since[group.index] = None
                certain = group.loop is None and self.cycle - since > _REST_GRACE
                for lane in group.lanes:
                    lane.decision.rest(certain=certain)

    def _check_port(self, port: int, event: Event) -> None:
        if event.kind in _LANE_KINDS:
            expected = 1 + event.lane
        elif event.kind in _PAGE_KINDS:
            expected = 1 + self.sizes.lanes
        else:
            expected = 0
        if port != expected:
            raise Divergence(f"{event} came on commit port {port}, not {expected}")
        if (event.kind in _LANE_KINDS or event.kind in _GROUP_KINDS) and event.lane >= self.sizes.lanes:
            raise Divergence(f"{event} names a lane that does not exist")

    def _legal(self, event: Event) -> list[Step]:
        """Legal steps of the port and group that ``event`` is of."""
        if event.kind == CommitKind.OFFER:
            return list(self._offers())
        if event.kind == CommitKind.UNOFFER:
            return list(self._withdrawals())
        if event.kind == CommitKind.DISPATCH:
            return self._dispatches(self.lanes[event.lane])
        if event.kind in _GROUP_KINDS:
            if self._bus.following is not None:
                return [self._bus.following]
            return self._background(self.groups[event.lane])
        if self._bus.following is not None and event.kind not in _LANE_KINDS:
            return [self._bus.following]
        return self._bus.owed()

    def _background(self, group: Group) -> list[Step]:
        """Legal steps of a group; empty while another one must not be interrupted."""
        for other in self.groups:
            if other is not group and other.busy_core:
                return []
        return list(group.steps())

    def _take_turn(self, group: Group, event: Event) -> None:
        """Notes whose turn it is: round robin, where loop points and forming passes are one turn."""
        inside = event.kind in _INNER_KINDS or (event.kind == CommitKind.RETIRE and group.busy_core)
        for other in self.groups:
            if other is not group or event.kind != CommitKind.RETIRE:
                other.end_loop()
        if inside:
            return
        self._passed_over[group.index] = 0
        for other in self.groups:
            if other is group or next(other.steps(), None) is None:
                continue
            self._passed_over[other.index] += 1
            if self._passed_over[other.index] > 2 * self.sizes.lanes:
                raise Divergence(f"group {other.index} waits for its turn while others had {2 * self.sizes.lanes}")

    def _dispatches(self, lane: Lane) -> list[Step]:
        """DISPATCHes that may come on a lane, with all the decision cycles that they may show."""
        group = self.group_of(lane)
        spans = sorted(lane.decision.spans(self.cycle))
        return [
            Step(
                step.event._replace(detail=step.event.detail | cycles << 16),
                partial(self._dispatch, lane, step, cycles),
            )
            for step in group.dispatching.dispatches(lane, pipeline=group.pipeline)
            for cycles in spans
        ]

    def _dispatch(self, lane: Lane, step: Step, cycles: int) -> None:
        step.effect()
        self.counters.add_decision(cycles, saturated=cycles == Decision.SATURATED)
        lane.decision.dispatch(self.cycle)
        if len(lane.dispatches) > 1:
            return
        lane.busy_since = self.cycle
        for write in self._bus.transaction.finished:
            if write.lane is lane and write.entry == lane.dispatches[0].sequence % 16:
                lane.dispatches[0].maybe_kept |= write.bits

    def _offers(self) -> list[Step]:
        if not self.slots.free:
            return []
        slot = self.slots.free[0]
        steps = []
        for number, page in enumerate(self.pages):
            if page.offer is None and self.control.pages >> number & 1:

                def effect(page: ProducerPage = page) -> None:
                    page.offer = self.slots.free.popleft()

                steps.append(Step(Event(CommitKind.OFFER, stage=number, id=self.slots.next_id(slot)), effect))
                if self.cycle - page.bare_since > _OFFER_GRACE:
                    break
        return steps

    def _withdrawals(self) -> list[Step]:
        steps = []
        for number, page in enumerate(self.pages):
            if page.offer is not None and not self.control.pages >> number & 1:

                def effect(page: ProducerPage = page) -> None:
                    assert page.offer is not None
                    self.slots.free.append(page.offer)
                    page.offer = None

                steps.append(Step(Event(CommitKind.UNOFFER, stage=number, id=self.slots.next_id(page.offer)), effect))
        return steps

    # ------------------------------------------------------------------------------------------- rest

    def check_rest(self) -> None:
        """Checks that the device, being idle, has left no work undone.

        Raises
        ------
        Divergence
            Some step is due.
        """
        self.written()
        for group in self.groups:
            group.end_loop()
        due = chain(
            self._offers(),
            *(group.steps() for group in self.groups),
            *map(self._dispatches, self.lanes),
        )
        left = [str(step.event) for step in due]
        if left:
            raise Divergence(f"the device is idle, but due is {', '.join(left)}")

    def read(self, offset: int) -> Word:
        """Foretells a 32-bit read of a device at rest.

        Parameters
        ----------
        offset
            Byte offset in BAR0, a multiple of 4.
        """
        return self._registers.read(offset)

    @property
    def readable(self) -> Iterable[int]:
        """Offsets of the 32-bit words that registers can be read from."""
        return self._registers.offsets
