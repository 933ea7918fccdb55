"""The host's own driver opens the simulated board, sets it up, and runs requests over the link."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cocotbext.pcie.core.tlp import CplStatus, TlpType

from cuelight import Device, regmap, results
from cuelight.lanes.port import LanePort
from cuelight.lanes.types import Dispatch, Entry, PassRecord, TokenStatus
from cuelight.policy import Tier
from cuelight.regmap import FallCause, PushMode
from cuelight.request import Request
from cuelight.status import Delivery
from cuelight.transports.polled import PolledTransport
from cuelight.transports.push import PushTimes

from .pcie.bench import PcieBench, bench
from .pcie.master import LinkMaster
from .pcie.registers import LinkRegisters

STAGES = 4
WAIT_S = 300.0
"""The simulation is some hundred thousand times slower than a board."""
TIMES = PushTimes(
    period_s=2e-6,
    completion_timeout_s=6e-6,
    rest_s=12e-6,
    stall_s=1e-3,
    overdue_s=200e-6,
    beats=2,
    pause_s=0.2,
    longest_pause_s=0.4,
)
# A device that is simulated beside other work may well do nothing for some seconds.
results._PATIENCE_S = WAIT_S
WRITES = (TlpType.MEM_WRITE, TlpType.MEM_WRITE_64)


class CountingLane:
    """Says a request's positions, in the place of a model."""

    def __init__(self, segment: Path, lane: int = 0) -> None:
        self._port = LanePort(segment, lane)
        self._records: dict[int, PassRecord] = {}
        self._positions: dict[int, int] = {}
        self._entries: dict[int, Entry] = {}
        self._dies = threading.Event()
        self._thread = threading.Thread(target=self._serve, name=f"lane-{lane}", daemon=True)
        self._thread.start()

    def die(self) -> None:
        """End in the middle of what it does."""
        self._dies.set()
        self._thread.join(WAIT_S)

    def _serve(self) -> None:
        with self._port as port:
            while not (port.stop_requested or self._dies.is_set()):
                if (dispatch := port.wait(0.1)) is not None:
                    finished = self._run(dispatch)
                    if not self._dies.is_set():
                        port.complete(dispatch.sequence, finished)

    def _run(self, dispatch: Dispatch) -> list[int]:
        """Seats that are finished with this dispatch."""
        if dispatch.first:
            self._records[dispatch.buffer] = record = self._port.record(dispatch)
            for entry in record.entries:
                self._entries[entry.seat] = entry
                self._positions[entry.seat] = entry.start + entry.rows
        if dispatch.stage < STAGES - 1:
            return []
        record = self._records[dispatch.buffer]
        sampling = {*record.decode, *(entry.seat for entry in record.entries if entry.last)}
        return [seat for seat in sorted(sampling) if self._say(seat)]

    def _say(self, seat: int) -> bool:
        """Whether the seat's request is finished with this token."""
        entry, position = self._entries[seat], self._positions[seat]
        self._positions[seat] += 1
        slot = self._port.slot_record(entry.slot)
        over = position + 1 == len(slot.prompt) + slot.limit
        status = TokenStatus.LENGTH if over else TokenStatus.MORE
        self._port.post_token(entry.request_id, position, position, 0.0, status)
        return over


class PushedDevice:
    """A device whose board masters the bus, and a lane of each group.

    Parameters
    ----------
    it
        The bench.
    registers
        The board's.
    """

    def __init__(self, it: PcieBench, registers: LinkRegisters) -> None:
        transport = PolledTransport(registers, LinkMaster(registers, it.board), times=TIMES, context=64)
        self.device = Device(transport, uri="pcie")
        self.device.configure(stages=STAGES, kv_blocks=64, block_positions=16)
        self.lanes = [CountingLane(self.device.segment.path, lane) for lane in self.groups]

    @property
    def groups(self) -> range:
        return range(self.device.capabilities.lanes)

    def delivery(self, lane: int = 0) -> Delivery:
        """How a lane's dispatches come, as the device says."""
        return self.device.status().lanes[lane].delivery

    def until_pushed(self) -> None:
        """Wait until all lanes are in PUSH."""
        until(
            lambda: all(lane.delivery.mode == PushMode.PUSH for lane in self.device.status().lanes),
            "lanes do not come to PUSH",
        )

    def check_answer(self, request: Request) -> None:
        """It says the positions behind its prompt."""
        said = [token.token for token in request.tokens(WAIT_S)]
        assert said == list(range(request.prompt_tokens, request.prompt_tokens + request.max_new_tokens)), said

    def ask(self, prompt: int = 3, tokens: int = 4, group: int = 0) -> Request:
        """For so many tokens."""
        return self.device.submit([7] * prompt, tokens, group=group, timeout_s=WAIT_S)


@contextlib.contextmanager
def pushed_device(it: PcieBench, registers: LinkRegisters) -> Iterator[PushedDevice]:
    """All lanes are pushed to."""
    pushed = PushedDevice(it, registers)
    with pushed.device:
        pushed.until_pushed()
        yield pushed


def until(what: Callable[[], bool], why: str) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + WAIT_S
    while not what():
        assert time.monotonic() < deadline, why


def loses_once(it: PcieBench, belongs: Callable[[Any], bool]) -> list[Any]:
    """The next packet of a kind is lost; it is in the list then."""
    lost: list[Any] = []

    def loses(packet: Any) -> bool:
        if lost or not belongs(packet):
            return False
        lost.append(packet)
        return True

    it.board.faults.loses = loses
    return lost


def loses_report(it: PcieBench) -> list[Any]:
    """The next write of lane 0's completion entries is lost."""
    first = it.board.address(regmap.COMPLETION)
    entries = range(first, first + regmap.COMPLETION_STRIDE)
    return loses_once(it, lambda packet: packet.fmt_type in WRITES and packet.address in entries)


@bench
async def manual_requests_walk_through_the_stages(it: PcieBench) -> None:
    def drive(registers: LinkRegisters) -> tuple[int, int]:
        with Device(PolledTransport(registers, context=64), uri="pcie") as device:
            request = device.admit(stage=3, timeout_s=WAIT_S)
            request.stage_done()
            request.run(stage=4)
            admitted = device.status().counters.admitted
            assert request.cancel()
            return request.id, admitted

    identity, admitted = await LinkRegisters(it.board, it.clk).serve(drive)
    assert identity == 1 << 16
    assert admitted == 1


@bench
async def automatic_requests_are_answered(it: PcieBench) -> None:
    prompts = ([1, 2, 3], [4] * 20)

    def drive(registers: LinkRegisters) -> list[list[int]]:
        with Device(PolledTransport(registers, context=64), uri="pcie") as device:
            device.configure(stages=STAGES, kv_blocks=64, block_positions=16, tiers=[Tier(min_seats=2), Tier()])
            CountingLane(device.segment.path)
            requests = [device.submit(prompt, 3, tier=tier, timeout_s=WAIT_S) for tier, prompt in enumerate(prompts)]
            return [[token.token for token in request.tokens(WAIT_S)] for request in requests]

    said = await LinkRegisters(it.board, it.clk).serve(drive)
    assert said == [[len(prompt), len(prompt) + 1, len(prompt) + 2] for prompt in prompts]


@bench
async def requests_run_on_lanes_that_are_pushed_to(it: PcieBench) -> None:
    def drive(registers: LinkRegisters) -> None:
        with pushed_device(it, registers) as pushed:
            before = registers.reads.copy()
            requests = [pushed.ask(prompt, group=prompt % 2) for prompt in (3, 20, 9, 4)]
            for request in requests:
                pushed.check_answer(request)
            # The host looks at no window that is empty.
            for lane in pushed.groups:
                head = regmap.POLL + regmap.POLL_STRIDE * lane + regmap.Poll.DISPATCH
                assert registers.reads[head] == before[head]
            status = pushed.device.status()
            for lane_state in status.lanes:
                assert lane_state.delivery.pushed > 2 * STAGES
                assert not lane_state.delivery.falls
            assert status.counters.completions_ignored == 0

    await LinkRegisters(it.board, it.clk).serve(drive)
    assert not it.board.device.functions[0].bus_master_enable


@bench
async def lanes_whose_memory_is_gone_for_a_while_are_polled(it: PcieBench) -> None:
    def drive(registers: LinkRegisters) -> None:
        with pushed_device(it, registers) as pushed:
            request = pushed.ask(tokens=12)
            next(request.tokens(WAIT_S))
            it.board.faults.gone[range(1 << 32, 2 << 32)] = CplStatus.UR
            until(lambda: FallCause.UNSUPPORTED in pushed.delivery().falls, "the lane does not fall")
            pushed.check_answer(request)
            it.board.faults.gone.clear()
            pushed.until_pushed()
            pushed.check_answer(pushed.ask())
            assert pushed.delivery().returns >= 2

    await LinkRegisters(it.board, it.clk).serve(drive)


@bench
async def a_lost_report_is_sent_again(it: PcieBench) -> None:
    def drive(registers: LinkRegisters) -> None:
        with pushed_device(it, registers) as pushed:
            lost = loses_report(it)
            pushed.check_answer(pushed.ask())
            assert lost
            assert pushed.delivery().falls == {FallCause.OVERDUE: 1}
            # The lane had gone on, and its second report was not yet due.
            assert pushed.device.status().counters.completions_ignored <= 1

    await LinkRegisters(it.board, it.clk).serve(drive)


@bench
async def a_lost_report_of_a_lane_that_is_polled_is_sent_again(it: PcieBench) -> None:
    def drive(registers: LinkRegisters) -> None:
        with Device(PolledTransport(registers, context=64), uri="pcie") as device:
            device.configure(stages=STAGES, kv_blocks=64, block_positions=16)
            CountingLane(device.segment.path)
            lost = loses_report(it)
            said = [token.token for token in device.submit([1, 2, 3], 3, timeout_s=WAIT_S).tokens(WAIT_S)]
            assert lost
            assert said == [3, 4, 5]
            assert device.status().counters.completions_ignored <= 1

    await LinkRegisters(it.board, it.clk).serve(drive)


@bench
async def a_lost_record_comes_again_with_its_dispatch(it: PcieBench) -> None:
    def drive(registers: LinkRegisters) -> None:
        with pushed_device(it, registers) as pushed:
            port = 1 << 32
            records = range(port + regmap.LanePort.RECORD, port + regmap.LanePort.TOKEN_RING)
            lost = loses_once(it, lambda packet: packet.fmt_type in WRITES and packet.address in records)
            pushed.check_answer(pushed.ask())
            assert lost
            assert pushed.delivery().falls == {FallCause.OVERDUE: 1}

    await LinkRegisters(it.board, it.clk).serve(drive)


@bench
async def a_dead_lane_is_replaced_and_pushed_to_again(it: PcieBench) -> None:
    def drive(registers: LinkRegisters) -> None:
        with pushed_device(it, registers) as pushed:
            request, other = pushed.ask(tokens=12), pushed.ask(tokens=12, group=1)
            next(request.tokens(WAIT_S))
            pushed.lanes[0].die()
            pushed.device.restart_group(0)
            CountingLane(pushed.device.segment.path)
            pushed.check_answer(request)
            pushed.check_answer(other)
            assert request.losses == 1
            # Before the group is reset, the device may have noticed by itself.
            assert pushed.delivery().falls[FallCause.COMMAND] == 1
            assert FallCause.COMMAND not in pushed.delivery(1).falls
            pushed.until_pushed()
            pushed.check_answer(pushed.ask())

    await LinkRegisters(it.board, it.clk).serve(drive)
