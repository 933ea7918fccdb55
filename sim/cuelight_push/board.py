"""The shell between a host on the bus and a hard block whose memory a script looks at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from cuelight import regmap
from cuelight.regmap import CommitKind, DispatchHead, DispatchPass, PageSchedAttr, PageSchedCmd, PushMode, PushStatus
from cuelight_formal.sizes import SmallParams
from cuelight_rtl.bus.pcie_usp.streams import RQ, CompletionStatus, RcDescriptor, RcError, RequestType, RqDescriptor

from .native import Native

__all__ = ["PARAMS", "PERIOD_US", "Answer", "Board", "Packet"]

PARAMS = SmallParams(slots=8, seats=4, lanes=2, stages=8)
PERIOD_US = 20
"""Between two heartbeats."""
_STAGES = 5
_LIMIT = 4000
"""Cycles after which what is waited for has not come."""
_BEAT = RQ.members["payload"].shape


@dataclass
class Answer:
    """How a heartbeat read is answered, some cycles later; ``value`` None: with what the memory holds."""

    delay: int = 10
    value: int | None = None
    changes: dict[str, int] = field(default_factory=dict)
    """Fields of the completion's descriptor that are not as they should be."""


@dataclass
class Packet:
    """What the device has put on RQ."""

    cycle: int
    """In which its first beat was seen."""
    modes: list[PushMode]
    """Of all lanes in that cycle."""
    words: list[int] = field(default_factory=list)
    kind: RequestType = RequestType.MEMORY_READ
    address: int = 0
    tag: int = 0
    enables: tuple[int, int] = (0, 0)


class Board:
    """The shell just after reset, where both groups have credit and a model of `_STAGES` stages.

    Parameters
    ----------
    random
        Makes every choice.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.native = Native(PARAMS)
        self.cycle = 0
        self.memory: dict[int, int] = {}
        """Dwords by address."""
        self.packets: list[Packet] = []
        self.answers: Callable[[int, int], list[Answer]] = lambda lane, tag: [Answer()]
        """For a heartbeat read of a lane, what comes back; nothing is the empty list."""
        self.stall = 0.0
        """How probable it is in each cycle that RQ has no room."""
        self.beats = True
        """Lanes are alive: heartbeats count up with every read."""
        self.gone: set[int | None] = set()
        """Lanes whose memory takes nothing: what is written there is lost."""
        self.commits: list[tuple[int, CommitKind, int, int]] = []
        """Cycle, kind, lane and id of each commit of lanes."""
        self._beats: list[tuple[int, int, int]] = []
        self._seen: Packet | None = None
        self._due: list[tuple[int, int, int, Answer]] = []
        self.native.set("mastering", 1)
        self.run(20)
        self.write32(regmap.CONTROL + regmap.Control.STAGE_COUNT, _STAGES)
        for group in range(PARAMS.lanes):
            self.write32(regmap.GROUP + regmap.GROUP_STRIDE * group + regmap.Group.KV_BLOCKS, 9)

    # ------------------------------------------------------------------------------------------- cycles

    def run(self, cycles: int = 1) -> None:
        """Lets cycles pass."""
        for _ in range(cycles):
            self._drive()
            self.native.settle()
            self._watch()
            self.native.tick()
            self.cycle += 1

    def _drive(self) -> None:
        self.native.set("rq__ready", self.random.random() >= self.stall)
        due = next((each for each in self._due if each[0] <= self.cycle), None)
        self.native.set("rc__valid", due is not None)
        if due is not None:
            self._due.remove(due)
            self._complete(*due[1:])

    def _watch(self) -> None:
        get = self.native.get
        valid = get("valid")
        for lane in range(PARAMS.lanes):
            if valid >> lane & 1:
                self.commits.append((self.cycle, CommitKind(get(f"kind__{lane}")), lane, get(f"id__{lane}")))
        if get("rq__valid"):
            if self._seen is None:
                self._seen = Packet(self.cycle, [self.mode(lane) for lane in range(PARAMS.lanes)])
            if get("rq__ready"):
                self._take_beat(self._seen)

    def mode(self, lane: int) -> PushMode:
        """A lane's mode, as it is in this cycle."""
        return PushMode(self.native.get(f"modes__{lane}"))

    def _take_beat(self, packet: Packet) -> None:
        beat = _BEAT.from_bits(self.native.get("rq__payload"))
        user, keep = beat.user, int(beat.keep)
        if not packet.words:
            packet.enables = int(user.first_be), int(user.last_be)
        packet.words += [int(beat.data) >> 32 * index & 0xFFFF_FFFF for index in range(8) if keep >> index & 1]
        if beat.last:
            self._seen = None
            self._take(packet)
        else:
            assert keep == 0xFF

    def _take(self, packet: Packet) -> None:
        """A packet must be one that a hard block takes."""
        header, packet.words = packet.words[:4], packet.words[4:]
        descriptor = RqDescriptor.from_bits(sum(word << 32 * index for index, word in enumerate(header)))
        count, packet.address, packet.tag = int(descriptor.count), int(descriptor.address) << 2, int(descriptor.tag)
        packet.kind = RequestType(int(descriptor.kind))
        reads = packet.kind is RequestType.MEMORY_READ
        assert int(descriptor.traffic_class) == int(descriptor.attributes) == 0
        assert packet.address % 4096 + 4 * count <= 4096
        assert count <= 32 << self.native.get("max_payload")
        assert packet.enables == (0xF, 0xF if count > 1 else 0)
        assert len(packet.words) == (0 if reads else count)
        self.packets.append(packet)
        lane = self.lane_of(packet)
        if lane is not None:
            assert packet.modes[lane] is not PushMode.POLL
        if lane not in self.gone:
            for index, word in enumerate(packet.words):
                self.memory[packet.address + 4 * index] = word
        if reads:
            assert count == 1
            if self.beats:
                self.memory[packet.address] = self.memory.get(packet.address, 0) + 1 & 0xFFFF_FFFF
            for answer in self.answers(packet.tag // 2, packet.tag):
                self._due.append((self.cycle + answer.delay, packet.address, packet.tag, answer))

    def _complete(self, address: int, tag: int, answer: Answer) -> None:
        value = self.memory.get(address, 0) if answer.value is None else answer.value
        fields = {"count": 1, "byte_count": 4, "completed": 1, "tag": tag, "status": CompletionStatus.SUCCESSFUL}
        fields |= {"error": RcError.NONE, **answer.changes}
        descriptor = RcDescriptor.const(fields).as_bits()
        beat = _BEAT.const({"data": descriptor | value << 96, "keep": 0x0F, "last": 1})
        self.native.set("rc__payload", beat.as_bits())

    def until(self, what: Callable[[], bool]) -> None:
        """Lets cycles pass until something is so."""
        for _ in range(_LIMIT):
            if what():
                return
            self.run()
        raise AssertionError("it does not come")

    # ------------------------------------------------------------------------------------------- the host

    def _transact(self, bus: str, offset: int, *, write: int = 0, data: int = 0, strobe: int = 0) -> int:
        asked = {"valid": 1, "address": offset & ~7, "write": write, "data": data, "strobe": strobe}
        for name, value in asked.items():
            self.native.set(f"{bus}__{name}", value)
        self.native.settle()
        while not self.native.get(f"{bus}__ready"):
            self.run()
        self.run()
        self.native.set(f"{bus}__valid", 0)
        if write:
            return 0
        self.until(lambda: bool(self.native.get(f"{bus}__answer_valid")))
        return self.native.get(f"{bus}__answer")

    def write32(self, offset: int, value: int) -> None:
        shift = 8 * (offset & 4)
        self._transact(_bus(offset), offset, write=1, data=value << shift, strobe=0xF0 if shift else 0x0F)

    def write64(self, offset: int, value: int) -> None:
        self._transact(_bus(offset), offset, write=1, data=value, strobe=0xFF)

    def read64(self, offset: int) -> int:
        return self._transact(_bus(offset), offset)

    def read32(self, offset: int) -> int:
        return self.read64(offset) >> 8 * (offset & 4) & 0xFFFF_FFFF

    def read_table(self, offset: int) -> int:
        """64 bits of BAR2."""
        return self._transact("table", offset)

    def write_table(self, offset: int, value: int, strobe: int = 0xFF) -> None:
        self._transact("table", offset, write=1, data=value, strobe=strobe)

    def admit(self, slot: int, group: int = 0, rows: int = 1) -> int:
        """Admits an automatic request of epoch 1 to a slot, which must be the one on offer."""
        request = 1 << 16 | slot
        self.write64(regmap.PAGE + regmap.Page.SCHED_ATTR, PageSchedAttr(automatic=1, rows=rows, group=group).pack())
        self.write64(regmap.PAGE + regmap.Page.SCHED_CMD, PageSchedCmd(id=request, stage=0).pack())
        return request

    # ------------------------------------------------------------------------------------------- lanes

    def push(self, lane: int, register: int) -> int:
        """Offset in BAR0 of a register of PUSH."""
        return regmap.PUSH + regmap.PUSH_STRIDE * lane + register

    def port(self, lane: int) -> int:
        """Address of a lane's port, in this host's memory."""
        return 0x2_0000_0000 + 0x1_0000 * lane

    def lane_of(self, packet: Packet) -> int | None:
        """The lane that a packet is of; None if it is a message."""
        return next((lane for lane in range(PARAMS.lanes) if packet.address >> 16 == self.port(lane) >> 16), None)

    def heartbeat(self, lane: int) -> int:
        return self.port(lane) + regmap.LanePort.HEARTBEAT

    def status(self, lane: int = 0) -> PushStatus:
        return PushStatus.unpack(self.read32(self.push(lane, regmap.Push.STATUS)))

    def count(self, register: int, lane: int = 0) -> int:
        """A counter of a lane."""
        return self.read32(self.push(lane, register))

    def ask(self, lane: int, generation: int) -> None:
        """Asks for PUSH, for a lane in POLL."""
        push = regmap.Push
        self.write64(self.push(lane, push.PORT_ADDRESS), self.port(lane))
        self.write64(self.push(lane, push.HEARTBEAT_ADDRESS), self.heartbeat(lane))
        for register, value in (
            *((push.PERIOD, PERIOD_US), (push.COMPLETION_TIMEOUT, 40), (push.REST, 200), (push.BEATS, 2)),
            *((push.GENERATION, generation), (push.COMMAND, regmap.PushCommand.PROBE)),
        ):
            self.write32(self.push(lane, register), value)

    def start(self, lane: int = 0, generation: int = 1) -> None:
        """Leads a lane from POLL to PUSH."""
        self.ask(lane, generation)
        self.until(lambda: self.status(lane).mode == PushMode.PROBING and not self.status(lane).needed)
        self.write32(self.push(lane, regmap.Push.COMMAND), regmap.PushCommand.PUSH)

    def store(self, address: int, words: list[int]) -> None:
        """Writes words of 64 bits to memory, as the host does."""
        for index, word in enumerate(words):
            self.memory[address + 8 * index] = word & 0xFFFF_FFFF
            self.memory[address + 8 * index + 4] = word >> 32

    def reach(self, lane: int, mode: PushMode) -> None:
        self.until(lambda: self.mode(lane) == mode)

    def dispatch(self, sequence: int, lane: int = 0) -> DispatchHead | None:
        """The dispatch in its place of the lane's ring, if it is whole."""
        place = self.port(lane) + regmap.LanePort.RING + regmap.LanePort.RING_STRIDE * (sequence % 16)
        words = [self.memory.get(place + 4 * index, 0) for index in range(8)]
        head = DispatchHead.unpack(words[1] << 32 | words[0])
        second = DispatchPass.unpack(words[3] << 32 | words[2])
        whole = {second.stamp, words[7] >> 16, sequence & 0xFFFF} == {sequence & 0xFFFF} and head.sequence == sequence
        return head if whole else None

    def record(self, buffer: int, lane: int = 0) -> list[int]:
        """Words of 64 bits in a record buffer of the lane's port."""
        base = self.port(lane) + regmap.LanePort.RECORD + regmap.LanePort.RECORD_STRIDE * buffer
        words = [self.memory.get(base + 4 * index, 0) for index in range(regmap.Record.SIZE // 4)]
        return [low | high << 32 for low, high in zip(words[::2], words[1::2], strict=True)]

    def arrives(self, sequence: int, lane: int = 0) -> DispatchHead:
        """A dispatch, once it is in the lane's ring."""
        self.until(lambda: self.dispatch(sequence, lane) is not None)
        head = self.dispatch(sequence, lane)
        assert head is not None
        return head

    def done(self, sequence: int, lane: int = 0) -> int:
        """Reports a dispatch complete; gives the cycle in which the bus took it."""
        entry = regmap.COMPLETION + regmap.COMPLETION_STRIDE * lane
        entry += regmap.COMPLETION_ENTRY_STRIDE * (sequence % 16)
        self.write32(entry + regmap.Completion.BATCH_DONE, sequence)
        return self.cycle - 1


def _bus(offset: int) -> str:
    return "registers" if offset >= regmap.PUSH else "host"
