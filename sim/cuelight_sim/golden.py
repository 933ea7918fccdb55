"""The scheduler in plain Python, written from docs/device.md and not from the RTL.

The model decides nothing that the device is free to decide: it replays the commits, demands that each one was
legal in its state, and foretells what registers and records show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cuelight import regmap
from cuelight.regmap import CommitKind

from .commands import Command, CommandJudge
from .fifos import Counters, EventTrace, RejectFifo
from .group import Group
from .pages import ProducerPage
from .registers import Registers, Word
from .slots import Slots, SlotState
from .steps import Divergence, Event, Step

if TYPE_CHECKING:
    from cuelight_rtl.model import Commit

__all__ = ["Control", "Golden", "Sizes"]

_MAX_ROWS = 512
_ROWS_BESIDE_SEATS = 16
_OFFER_GRACE = 16
"""Cycles for which a page that just lost its offer need not yet go before higher pages."""

_LANE_KINDS = frozenset({CommitKind.DISPATCH, CommitKind.COMPLETE, CommitKind.COMPLETE_IGNORED, CommitKind.TAKEN})
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
    }
)
_BUS_KINDS = frozenset(CommitKind) - _GROUP_KINDS - _PAGE_KINDS - {CommitKind.DISPATCH}
"""Made by a write, not by background work (but a RETIRE also follows the cancel of a queued request)."""
_INNER_KINDS = frozenset({CommitKind.ADVANCE, CommitKind.CHUNK, CommitKind.FORM})


class Sizes(Protocol):
    """Sizes of a device; `cuelight_rtl.params.Params` has them."""

    @property
    def slots(self) -> int: ...
    @property
    def seats(self) -> int: ...
    @property
    def lanes(self) -> int: ...
    @property
    def stages(self) -> int: ...


@dataclass(slots=True)
class Control:
    """Settings of the whole device."""

    stage_count: int
    pages: int = 1
    """Bitmap of enabled pages."""


class _Duty(NamedTuple):
    """A commit that the present transaction owes."""

    steps: Callable[[], Sequence[Step]]
    """Alternatives for it, as of now."""
    without: Callable[[], None] | None = None
    """What happens where none comes; None: one must come."""


@dataclass(slots=True)
class _FinishedWrite:
    """FINISHED words of the present transaction, for dispatches that come while it is under way."""

    lane: int
    entry: int
    bits: int


@dataclass(slots=True)
class _Transaction:
    """The write that was accepted last, until the next one."""

    cycle: int = 0
    duty: _Duty | None = None
    finished: list[_FinishedWrite] = field(default_factory=list)


class Golden:
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
        self.sizes = sizes
        self.nonce = nonce
        self.ns_per_cycle = ns_per_cycle
        self.control = Control(stage_count=sizes.stages)
        self.slots = Slots(sizes.slots)
        self.counters = Counters()
        self.rejects = RejectFifo()
        self.trace = EventTrace()
        self.pages = tuple(ProducerPage() for _ in range(regmap.PAGE_COUNT))
        self.groups = tuple(
            Group(lane, sizes.seats, self.slots, self.counters, lambda: self.control.stage_count)
            for lane in range(sizes.lanes)
        )
        self.commands = CommandJudge(self.slots, self.pages, self.groups, self.rejects, self.counters)
        self._writers = self._writable_registers()
        self._readers = Registers(self)
        self._transaction = _Transaction()
        self._following: Step | None = None
        """A step that must come before any other on the core port."""
        self._passed_over = [0] * sizes.lanes
        """Units of work done for other groups while this one had some."""
        self._cycle = 0

    # ------------------------------------------------------------------------------------------- the bus

    def write(self, offset: int, data: int, strobe: int = 0xFF, cycle: int | None = None) -> None:
        """Notes a write that the device has accepted.

        Parameters
        ----------
        offset
            Byte offset in BAR0, a multiple of 8.
        data
            64 bits.
        strobe
            A bit for each byte of ``data``.
        cycle
            Cycle in which the write is accepted; the last commit's where it is left out.

        Raises
        ------
        Divergence
            The write before has not had the effect it must have.
        """
        self.written()
        self._transaction = _Transaction(self._cycle if cycle is None else cycle)
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
        duty = self._transaction.duty
        if duty is not None and duty.without is not None:
            duty.without()
        elif duty is not None:
            expected = " or ".join(str(step.event) for step in duty.steps())
            raise Divergence(f"the write's effect is complete, but it made no commit; expected {expected}")
        if self._following is not None:
            raise Divergence(f"the write's effect is complete without {self._following.event}")
        for number, page in enumerate(self.pages):
            if page.offer is not None and not self.control.pages >> number & 1:
                raise Divergence(f"page {number} was disabled and keeps the offer of slot {page.offer}")
        self._transaction = _Transaction(self._cycle)

    def _write_page_bytes(self, number: int, register: int, data: int, strobe: int) -> None:
        page = self.pages[number]
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
            regmap.FIFO + regmap.Fifo.REJECT_POP: lambda index: self._count_pop(self.rejects.pop(index)),
            regmap.FIFO + regmap.Fifo.TRACE_POP: lambda index: self._count_pop(self.trace.pop(index)),
            regmap.FIFO + regmap.Fifo.RETIRE_POP: lambda index: self._owe(lambda: [self._judge_pop(index)]),
        }
        for page in range(regmap.PAGE_COUNT):
            offset = regmap.PAGE + page * regmap.PAGE_STRIDE + regmap.Page.STAGE_DONE
            writers[offset] = partial(self._write_stage_done, page)
        for group in self.groups:
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
        self._transaction.duty = _Duty(steps)

    def _judge_command(self, command: Command) -> list[Step]:
        enabled = bool(self.control.pages >> command.page & 1)
        step = self.commands.judge(command, enabled=enabled, stage_count=self.control.stage_count)

        def effect() -> None:
            step.effect()
            if step.event.kind == CommitKind.ADMIT:
                self.pages[command.page].bare_since = self._cycle
            elif step.event.kind == CommitKind.CANCEL and step.event.stage == 1:
                self._following = self.commands.retirement_of(command.id)

        return [Step(step.event, effect)]

    def _write_stage_done(self, page: int, request_id: int) -> None:
        def judge() -> list[Step]:
            slot = request_id & 0xFFFF
            enabled = self.control.pages >> page & 1
            if enabled and self.slots.holds(request_id) and self.slots.state[slot] is SlotState.RUNNING:
                return [Step(Event(CommitKind.STAGE_DONE, id=request_id), partial(self._set_waiting, slot))]
            return [Step(Event(CommitKind.STAGE_DONE_IGNORED, id=request_id), self._count_stage_done)]

        self._owe(judge)

    def _set_waiting(self, slot: int) -> None:
        self.slots.state[slot] = SlotState.WAITING

    def _count_stage_done(self) -> None:
        self.counters.stage_done_ignored += 1

    def _judge_pop(self, index: int) -> Step:
        if self.slots.retirements and index == self.slots.retire_index:
            request_id, _ = self.slots.retirements[0]
            return Step(Event(CommitKind.FREE, id=request_id, detail=index), self.slots.pop_retirement)
        return Step(Event(CommitKind.POP_IGNORED, detail=index), partial(self._count_pop, False))

    def _count_pop(self, hit: bool) -> None:
        self.counters.pops_ignored += not hit

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
        self.counters.config_ignored += 1

    def _write_page_enable(self, mask: int) -> None:
        def effect() -> None:
            for number, page in enumerate(self.pages):
                if mask & ~self.control.pages & 1 << number:
                    page.bare_since = self._cycle
            self.control.pages = mask

        offset = regmap.CONTROL + regmap.Control.PAGE_ENABLE
        self._configure(offset, mask, lambda: [mask <= 0xFF], effect)

    def _write_stage_count(self, count: int) -> None:
        def effect() -> None:
            self.control.stage_count = count

        def verdicts() -> list[bool]:
            return [1 <= count <= self.sizes.stages and all(group.empty for group in self.groups)]

        self._configure(regmap.CONTROL + regmap.Control.STAGE_COUNT, count, verdicts, effect)

    def _write_group_reset(self, index: int) -> None:
        offset = regmap.CONTROL + regmap.Control.GROUP_RESET
        if index >= self.sizes.lanes:
            self._configure(offset, index, lambda: [False], lambda: None)
        else:
            self._owe(lambda: [Step(Event(CommitKind.GROUP_RESET, index), self.groups[index].reset)])

    def _write_seats(self, group: Group, count: int) -> None:
        def effect() -> None:
            group.seats = count

        def verdicts() -> list[bool]:
            return [1 <= count <= self.sizes.seats and count + _ROWS_BESIDE_SEATS <= group.rows and group.empty]

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
            self._transaction.finished.append(_FinishedWrite(group.index, entry, bits))

    def _write_batch_done(self, group: Group, entry: int, sequence: int) -> None:
        def judge() -> list[Step]:
            step = group.completion(entry, sequence)

            def effect() -> None:
                step.effect()
                if step.event.kind == CommitKind.COMPLETE:
                    group.busy_cycles += self._cycle - group.dispatched
                    group.decision.idle = False
                    group.decision.completed = self._cycle

            return [Step(step.event, effect)]

        self._owe(judge)

    def _write_poll_pop(self, group: Group, sequence: int) -> None:
        def judge() -> list[Step]:
            step = group.taken()
            return [step] if step is not None and step.event.id == sequence else []

        # The head may turn up, or not in time, while the pop is under way.
        ignored = None if judge() else partial(self._count_pop, False)
        self._transaction.duty = _Duty(judge, ignored)

    # ------------------------------------------------------------------------------------------- commits

    def commit(self, commit: Commit) -> None:
        """Checks a commit against the state and applies it.

        Raises
        ------
        Divergence
            The step is not legal now.
        """
        event = Event(CommitKind(commit.kind), commit.lane, commit.stage, commit.id, commit.detail)
        if commit.cycle < self._cycle:
            raise Divergence(f"{event} of cycle {commit.cycle} came after one of cycle {self._cycle}")
        self._cycle = commit.cycle
        self._check_port(commit.port, event)
        steps = self._legal(event)
        step = next((step for step in steps if step.event == event), None)
        if step is None:
            legal = ", ".join(str(step.event) for step in steps) or "nothing of the kind"
            raise Divergence(f"cycle {commit.cycle}: {event} is not legal; legal now: {legal}")
        if event.kind in _GROUP_KINDS and self._following is None:
            self._take_turn(self.groups[event.lane], event)
        if event.kind in _BUS_KINDS:
            self._transaction.duty = None
        if commit.port == 0:
            self._following = None
        step.effect()
        if not self.trace.record(event, self._cycle):
            self.counters.trace_lost += 1

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
            step = self._dispatch(event)
            return [step] if step else []
        if event.kind in _GROUP_KINDS:
            if self._following is not None:
                return [self._following]
            return self._background(self.groups[event.lane])
        if self._following is not None and event.kind not in _LANE_KINDS:
            return [self._following]
        duty = self._transaction.duty
        return list(duty.steps()) if duty is not None else []

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
            if other.loop_over and (other is not group or event.kind != CommitKind.RETIRE):
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
        if event.kind == CommitKind.PLAN:
            group.decision.planned = self._cycle

    def _dispatch(self, event: Event) -> Step | None:
        group = self.groups[event.lane]
        step = group.dispatch()
        if step is None:
            return None
        cycles = event.detail >> 16 & 0xFFF
        assert group.alive is not None
        spans = group.decision.spans(self._cycle, first=group.alive.dispatched == 0)
        if cycles not in spans:
            raise Divergence(f"{event} shows {cycles} decision cycles, not one of {sorted(spans)}")

        def effect() -> None:
            step.effect()
            group.dispatched = self._cycle
            assert group.outstanding is not None
            for write in self._transaction.finished:
                if write.lane == group.index and write.entry == group.outstanding.sequence % 16:
                    group.outstanding.maybe_kept |= write.bits
            self.counters.add_decision(cycles, saturated=cycles == group.decision.SATURATED)

        return Step(step.event._replace(detail=step.event.detail | cycles << 16), effect)

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
                if self._cycle - page.bare_since > _OFFER_GRACE:
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
            if group.loop_over:
                group.end_loop()
        due = chain(
            self._offers(),
            *(group.steps() for group in self.groups),
            *([step] for group in self.groups if (step := group.dispatch()) is not None),
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
        return self._readers.read(offset)

    @property
    def readable(self) -> Iterable[int]:
        """Offsets of the 32-bit words that registers can be read from."""
        return self._readers.offsets
