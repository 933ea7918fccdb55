"""Writes to the device: what each one owes on the commit ports (docs/device.md §2 to §5, §7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from cuelight import regmap
from cuelight.regmap import CommitKind

from .commands import Command, CommandJudge
from .group import Group
from .slots import SlotState
from .state import State
from .steps import Divergence, Event, Step

__all__ = ["Bus"]

_MAX_ROWS = 512
_ROWS_BESIDE_SEATS = 16


class Duty(NamedTuple):
    """A commit that the present transaction owes."""

    steps: Callable[[], Sequence[Step]]
    """Alternatives for it, as of now."""
    without: Callable[[], None] | None = None
    """What happens where none comes; None: one must come."""


@dataclass(slots=True)
class FinishedWrite:
    """FINISHED words of the present transaction, for dispatches that come while it is under way."""

    lane: int
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
        self._commands = CommandJudge(state.slots, state.pages, state.groups, state.rejects, state.counters)
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
            regmap.CONTROL + regmap.Control.PAGE_ENABLE: self._write_page_enable,
            regmap.CONTROL + regmap.Control.GROUP_RESET: self._write_group_reset,
            regmap.CONTROL + regmap.Control.STAGE_COUNT: self._write_stage_count,
            regmap.FIFO + regmap.Fifo.REJECT_POP: lambda index: self._count_pop(self._state.rejects.pop(index)),
            regmap.FIFO + regmap.Fifo.TRACE_POP: lambda index: self._count_pop(self._state.trace.pop(index)),
            regmap.FIFO + regmap.Fifo.RETIRE_POP: lambda index: self._owe(lambda: [self._judge_pop(index)]),
        }
        for page in range(regmap.PAGE_COUNT):
            offset = regmap.PAGE + page * regmap.PAGE_STRIDE + regmap.Page.STAGE_DONE
            writers[offset] = partial(self._write_stage_done, page)
        for group in self._state.groups:
            base = regmap.GROUP + group.index * regmap.GROUP_STRIDE
            writers[base + regmap.Group.SEATS] = partial(self._write_seats, group)
            writers[base + regmap.Group.ROWS] = partial(self._write_rows, group)
            writers[base + regmap.Group.KV_BLOCKS] = partial(self._write_kv_blocks, group)
            base = regmap.LANE + group.index * regmap.LANE_STRIDE
            writers[base + regmap.Lane.SEQUENCE] = partial(self._write_sequence, group)
            base = regmap.POLL + group.index * regmap.POLL_STRIDE
            writers[base + regmap.Poll.POP] = partial(self._write_poll_pop, group)
            for entry in range(regmap.COMPLETION_ENTRY_COUNT):
                base = (
                    regmap.COMPLETION + group.index * regmap.COMPLETION_STRIDE + entry * regmap.COMPLETION_ENTRY_STRIDE
                )
                writers[base + regmap.Completion.BATCH_DONE] = partial(self._write_batch_done, group, entry)
                for word in range(regmap.Completion.FINISHED_COUNT):
                    offset = base + regmap.Completion.FINISHED + word * regmap.Completion.FINISHED_STRIDE
                    writers[offset] = partial(self._write_finished, group, entry, word)
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
        def judge() -> list[Step]:
            slot = request_id & 0xFFFF
            enabled = self._state.control.pages >> page & 1
            if enabled and self._state.slots.holds(request_id) and self._state.slots.state[slot] is SlotState.RUNNING:
                return [Step(Event(CommitKind.STAGE_DONE, id=request_id), partial(self._set_waiting, slot))]
            return [Step(Event(CommitKind.STAGE_DONE_IGNORED, id=request_id), self._count_stage_done)]

        self._owe(judge)

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

    # ------------------------------------------------------------------------------------------- control

    def _configure(
        self, offset: int, value: int, verdicts: Callable[[], Sequence[bool]], effect: Callable[[], None]
    ) -> None:
        def judge() -> list[Step]:
            return [
                Step(Event(CommitKind.CONFIG, id=offset, detail=value), effect)
                if accepted
                else Step(Event(CommitKind.CONFIG_IGNORED, id=offset, detail=value), self._count_config)
                for accepted in verdicts()
            ]

        self._owe(judge)

    def _count_config(self) -> None:
        self._state.counters.config_ignored += 1

    def _write_page_enable(self, mask: int) -> None:
        def effect() -> None:
            for number, page in enumerate(self._state.pages):
                if mask & ~self._state.control.pages & 1 << number:
                    page.bare_since = self._state.cycle
            self._state.control.pages = mask

        offset = regmap.CONTROL + regmap.Control.PAGE_ENABLE
        self._configure(offset, mask, lambda: [mask <= 0xFF], effect)

    def _write_stage_count(self, count: int) -> None:
        def effect() -> None:
            self._state.control.stage_count = count

        def verdicts() -> list[bool]:
            return [1 <= count <= self._state.sizes.stages and all(group.empty for group in self._state.groups)]

        self._configure(regmap.CONTROL + regmap.Control.STAGE_COUNT, count, verdicts, effect)

    def _write_group_reset(self, index: int) -> None:
        offset = regmap.CONTROL + regmap.Control.GROUP_RESET
        if index >= self._state.sizes.lanes:
            self._configure(offset, index, lambda: [False], lambda: None)
        else:
            self._owe(lambda: [Step(Event(CommitKind.GROUP_RESET, index), self._state.groups[index].reset)])

    def _write_seats(self, group: Group, count: int) -> None:
        def effect() -> None:
            group.seats = count

        def verdicts() -> list[bool]:
            return [1 <= count <= self._state.sizes.seats and count + _ROWS_BESIDE_SEATS <= group.rows and group.empty]

        offset = regmap.GROUP + group.index * regmap.GROUP_STRIDE + regmap.Group.SEATS
        self._configure(offset, count, verdicts, effect)

    def _write_rows(self, group: Group, count: int) -> None:
        def effect() -> None:
            group.rows = count

        def verdicts() -> list[bool]:
            return [group.seats + _ROWS_BESIDE_SEATS <= count <= _MAX_ROWS and group.empty]

        offset = regmap.GROUP + group.index * regmap.GROUP_STRIDE + regmap.Group.ROWS
        self._configure(offset, count, verdicts, effect)

    def _write_kv_blocks(self, group: Group, count: int) -> None:
        def effect() -> None:
            group.kv_blocks = group.kv_free = count

        offset = regmap.GROUP + group.index * regmap.GROUP_STRIDE + regmap.Group.KV_BLOCKS
        self._configure(offset, count, lambda: [count <= 0xFFFF and group.empty], effect)

    def _write_sequence(self, group: Group, value: int) -> None:
        def effect() -> None:
            if group.loop_over:
                group.end_loop()
            group.sequence = value

        offset = regmap.LANE + group.index * regmap.LANE_STRIDE + regmap.Lane.SEQUENCE
        self._configure(offset, value, lambda: group.sequence_verdicts(value), effect)

    # ------------------------------------------------------------------------------------------- lanes

    def _write_finished(self, group: Group, entry: int, word: int, seats: int) -> None:
        bits = seats << 32 * word
        if group.outstanding is not None and group.outstanding.sequence % 16 == entry:
            group.outstanding.kept |= bits
        else:
            self.transaction.finished.append(FinishedWrite(group.index, entry, bits))

    def _write_batch_done(self, group: Group, entry: int, sequence: int) -> None:
        def judge() -> list[Step]:
            step = group.completion(entry, sequence)

            def effect() -> None:
                step.effect()
                if step.event.kind == CommitKind.COMPLETE:
                    group.busy_cycles += self._state.cycle - group.dispatched
                    group.decision.idle = False
                    group.decision.completed = self._state.cycle

            return [Step(step.event, effect)]

        self._owe(judge)

    def _write_poll_pop(self, group: Group, sequence: int) -> None:
        def judge() -> list[Step]:
            step = group.taken()
            return [step] if step is not None and step.event.id == sequence else []

        # The head may turn up, or not in time, while the pop is under way.
        ignored = None if judge() else partial(self._count_pop, False)
        self.transaction.duty = Duty(judge, ignored)
