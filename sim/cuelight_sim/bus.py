"""Writes to the device: what each one owes on the commit ports (docs/device.md §2 to §5, §7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from cuelight import regmap
from cuelight.regmap import CommitKind

from .commands import Command, CommandJudge
from .control import ControlWrites
from .lane import Lane, Outstanding
from .parking import credit, park
from .slots import Request, SlotState
from .state import State
from .steps import Divergence, Event, Step

__all__ = ["Bus"]


class Duty(NamedTuple):
    """A commit that the present transaction owes."""

    steps: Callable[[], Sequence[Step]]
    """Alternatives for it, as of now."""
    without: Callable[[], None] | None = None
    """What happens where none comes; None: one must come."""


@dataclass(slots=True)
class FinishedWrite:
    """FINISHED words of the present transaction, for dispatches that come while it is under way."""

    lane: Lane
    entry: int
    bits: int


@dataclass(slots=True)
class Transaction:
    """The write that was accepted last, until the next one."""

    duty: Duty | None = None
    finished: list[FinishedWrite] = field(default_factory=list)


class Bus:
    """Takes writes one after the other.

    Parameters
    ----------
    state
        What they act on.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._commands = CommandJudge(
            state.slots, state.pages, state.groups, state.tiers, state.rejects, state.counters
        )
        self._control = ControlWrites(state, self._owe)
        self._writers = self._writable_registers()
        self.transaction = Transaction()
        self.following: Step | None = None
        """A step that must come before any other on the core port."""

    def owed(self) -> list[Step]:
        """Alternatives for the commit that the present transaction owes."""
        duty = self.transaction.duty
        return list(duty.steps()) if duty is not None else []

    # ------------------------------------------------------------------------------------------- the bus

    def write(self, offset: int, data: int, strobe: int) -> None:
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
        self.written()
        self.transaction = Transaction()
        if offset < regmap.IDENTITY:
            self._write_page_bytes(offset // regmap.PAGE_STRIDE, offset % regmap.PAGE_STRIDE, data, strobe)
        for half in range(2):
            if strobe >> 4 * half & 0xF == 0xF:
                register = self._writers.get(offset + 4 * half)
                if register is not None:
                    register(data >> 32 * half & 0xFFFF_FFFF)

    def written(self) -> None:
        """Notes that the last write has had its whole effect.

        Raises
        ------
        Divergence
            It has not.
        """
        duty = self.transaction.duty
        if duty is not None and duty.without is not None:
            duty.without()
        elif duty is not None:
            expected = " or ".join(str(step.event) for step in duty.steps())
            raise Divergence(f"the write's effect is complete, but it made no commit; expected {expected}")
        if self.following is not None:
            raise Divergence(f"the write's effect is complete without {self.following.event}")
        for number, page in enumerate(self._state.pages):
            if page.offer is not None and not self._state.control.pages >> number & 1:
                raise Divergence(f"page {number} was disabled and keeps the offer of slot {page.offer}")
        self.transaction = Transaction()

    def _write_page_bytes(self, number: int, register: int, data: int, strobe: int) -> None:
        page = self._state.pages[number]
        if not strobe:
            return
        if register == regmap.Page.SCHED_ATTR:
            page.write_attributes(data, strobe)
        elif register == regmap.Page.SCHED_CMD:
            page.command.store(data, strobe)
            if page.command.whole:
                self._owe(partial(self._judge_command, Command.of(number, page.command, page.attributes)))
                page.command.clear()
                page.attributes.clear()

    def _writable_registers(self) -> dict[int, Callable[[int], None]]:
        """What a whole write of each 32-bit register does."""
        writers: dict[int, Callable[[int], None]] = {
            regmap.FIFO + regmap.Fifo.REJECT_POP: lambda index: self._count_pop(self._state.rejects.pop(index)),
            regmap.FIFO + regmap.Fifo.TRACE_POP: lambda index: self._count_pop(self._state.trace.pop(index)),
            regmap.FIFO + regmap.Fifo.RETIRE_POP: lambda index: self._owe(lambda: [self._judge_pop(index)]),
        }
        for page in range(regmap.PAGE_COUNT):
            base = regmap.PAGE + page * regmap.PAGE_STRIDE
            writers[base + regmap.Page.STAGE_DONE] = partial(self._write_stage_done, page)
            writers[base + regmap.Page.PARK] = partial(self._write_park, page)
            writers[base + regmap.Page.CREDIT] = partial(self._write_credit, page)
        writers.update(self._control.writers())
        for lane in self._state.lanes:
            base = regmap.POLL + lane.index * regmap.POLL_STRIDE
            writers[base + regmap.Poll.POP] = partial(self._write_poll, lane.taken)
            writers[base + regmap.Poll.REOFFER] = partial(self._write_poll, lane.reoffered)
            for entry in range(regmap.COMPLETION_ENTRY_COUNT):
                base = (
                    regmap.COMPLETION + lane.index * regmap.COMPLETION_STRIDE + entry * regmap.COMPLETION_ENTRY_STRIDE
                )
                writers[base + regmap.Completion.BATCH_DONE] = partial(self._write_batch_done, lane, entry)
                for word in range(regmap.Completion.FINISHED_COUNT):
                    offset = base + regmap.Completion.FINISHED + word * regmap.Completion.FINISHED_STRIDE
                    writers[offset] = partial(self._write_finished, lane, entry, word)
        return writers

    def _owe(self, steps: Callable[[], Sequence[Step]]) -> None:
        self.transaction.duty = Duty(steps)

    def _judge_command(self, command: Command) -> list[Step]:
        enabled = bool(self._state.control.pages >> command.page & 1)
        step = self._commands.judge(command, enabled=enabled, stage_count=self._state.control.stage_count)

        def effect() -> None:
            step.effect()
            if step.event.kind == CommitKind.ADMIT:
                self._state.pages[command.page].bare_since = self._state.cycle
            elif step.event.kind == CommitKind.CANCEL and step.event.stage == 1:
                self.following = self._commands.retirement_of(command.id)

        return [Step(step.event, effect)]

    def _write_stage_done(self, page: int, request_id: int) -> None:
        done = Event(CommitKind.STAGE_DONE, id=request_id)

        def judge() -> list[Step]:
            slots, slot = self._state.slots, request_id & 0xFFFF
            if self._state.control.pages >> page & 1 and slots.holds(request_id):
                request = slots.request[slot]
                if slots.state[slot] is SlotState.RUNNING:
                    return [Step(done, partial(self._set_waiting, slot))]
                outstanding = self._reportable(request) if request is not None else None
                if request is not None and outstanding is not None:
                    return [Step(done, partial(self._report, outstanding, request))]
            return [Step(Event(CommitKind.STAGE_DONE_IGNORED, id=request_id), self._count_stage_done)]

        self._owe(judge)

    def _reportable(self, request: Request) -> Outstanding | None:
        group = self._state.groups[request.group]
        return group.dispatching.reportable(group.lanes, request)

    def _report(self, oldest: Outstanding, request: Request) -> None:
        assert request.seat is not None
        oldest.reported |= 1 << request.seat
        if oldest.reported == oldest.run.members:
            self._owe(lambda: [self._completion(oldest.leg.lane, oldest.sequence % 16, oldest.sequence)])

    def _write_park(self, page: int, request_id: int) -> None:
        def judge() -> list[Step]:
            request = self._automatic(page, request_id)
            if request is None:
                return [Step(Event(CommitKind.PARK, id=request_id, detail=page), self._count_stage_done)]
            return [
                Step(Event(CommitKind.PARK, stage=code, id=request_id, detail=page), effect)
                for code, effect in park(self._state.groups[request.group], request)
            ]

        self._owe(judge)

    def _write_credit(self, page: int, request_id: int) -> None:
        def judge() -> list[Step]:
            request = self._automatic(page, request_id)
            if request is None:
                return [Step(Event(CommitKind.CREDIT, id=request_id, detail=page), self._count_stage_done)]
            code, effect = credit(self._state.groups[request.group], request)
            return [Step(Event(CommitKind.CREDIT, stage=code, id=request_id, detail=page), effect)]

        self._owe(judge)

    def _automatic(self, page: int, request_id: int) -> Request | None:
        """The automatic request that an enabled page names."""
        if not self._state.control.pages >> page & 1 or not self._state.slots.holds(request_id):
            return None
        return self._state.slots.request[request_id & 0xFFFF]

    def _set_waiting(self, slot: int) -> None:
        self._state.slots.state[slot] = SlotState.WAITING

    def _count_stage_done(self) -> None:
        self._state.counters.stage_done_ignored += 1

    def _judge_pop(self, index: int) -> Step:
        if self._state.slots.retirements and index == self._state.slots.retire_index:
            request_id, _ = self._state.slots.retirements[0]
            return Step(Event(CommitKind.FREE, id=request_id, detail=index), self._state.slots.pop_retirement)
        return Step(Event(CommitKind.POP_IGNORED, detail=index), partial(self._count_pop, False))

    def _count_pop(self, hit: bool) -> None:
        self._state.counters.pops_ignored += not hit

    # ------------------------------------------------------------------------------------------- lanes

    def _write_finished(self, lane: Lane, entry: int, word: int, seats: int) -> None:
        bits = seats << 32 * word
        if lane.outstanding is not None and lane.outstanding.sequence % 16 == entry:
            lane.outstanding.kept |= bits
        else:
            self.transaction.finished.append(FinishedWrite(lane, entry, bits))

    def _write_batch_done(self, lane: Lane, entry: int, sequence: int) -> None:
        self._owe(lambda: [self._completion(lane, entry, sequence)])

    def _completion(self, lane: Lane, entry: int, sequence: int) -> Step:
        return self._state.group_of(lane).dispatching.completion(lane, entry, sequence)

    def _write_poll(self, meant: Callable[[], Step | None], sequence: int) -> None:
        """POP or REOFFER, which does ``meant`` if it names the dispatch that this is about."""

        def judge() -> list[Step]:
            step = meant()
            return [step] if step is not None and step.event.id == sequence else []

        # The dispatch may turn up, or not in time, while the write is under way.
        ignored = None if judge() else partial(self._count_pop, False)
        self.transaction.duty = Duty(judge, ignored)
