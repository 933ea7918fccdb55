"""A host with a board behind its link: registers on one side, lanes' memory on the other."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from cuelight import regmap
from cuelight.regmap import CommitKind, DispatchHead, DispatchPass, PageSchedAttr, PageSchedCmd, PushMode, PushStatus
from cuelight_formal.sizes import SmallParams
from cuelight_rtl.bus.pcie_usp.streams import RequestType

from .link import Answer, Link, Packet

__all__ = ["ALL_ONES", "PARAMS", "STAGES", "Board", "next_sequence"]

PARAMS = SmallParams(slots=8, seats=4, lanes=2, stages=8)
STAGES = 5
ALL_ONES = (1 << 64) - 1
"""What the host reads where nobody answers."""
_PERIOD_US, _TIMEOUT_US, _REST_US, _BEATS = 20, 40, 200, 2
_TAGS = 32
_BLOCKS = 9


class Board:
    """The board just after reset, where the function masters, both groups have credit and the model `STAGES` stages.

    Parameters
    ----------
    random
        Makes every choice.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.link = Link(PARAMS, random, self._take)
        self.memory: dict[int, int] = {}
        """Dwords by address."""
        self.packets: list[Packet] = []
        self.answers: Callable[[int, int], list[Answer]] = lambda lane, tag: [Answer()]
        """For a heartbeat read of a lane, what comes back; nothing is the empty list."""
        self.beats = True
        """Lanes are alive: heartbeats count up with every read."""
        self.gone: set[int | None] = set()
        """Lanes whose memory the device does not reach: what it writes there is lost."""
        self.loses: Callable[[Packet], bool] = lambda packet: False
        """Whether a write is lost on its way."""
        self.delivering: set[int | None] = set()
        """Lanes whose port the host writes to: nothing of the device's may come there."""
        self._tag = 0
        self._stamps: dict[tuple[int, int], list[int]] = {}
        """Of records that were pushed before their dispatch, by lane and buffer."""
        self.set_up()

    def set_up(self) -> None:
        """What comes first after every reset."""
        self._stamps = {}
        self.link.run(20)
        self.link.master(True)
        self.write32(regmap.CONTROL + regmap.Control.STAGE_COUNT, STAGES)
        for group in range(PARAMS.lanes):
            self.write32(regmap.GROUP + regmap.GROUP_STRIDE * group + regmap.Group.KV_BLOCKS, _BLOCKS)

    @property
    def cycle(self) -> int:
        return self.link.cycle

    def run(self, cycles: int = 1) -> None:
        """Let cycles pass."""
        self.link.run(cycles)

    def until(self, what: Callable[[], bool]) -> None:
        """Let cycles pass until something is so."""
        self.link.until(what)

    # ------------------------------------------------------------------------------------------- memory

    def _take(self, packet: Packet) -> None:
        """What becomes of a packet behind the wire."""
        self.packets.append(packet)
        lane = self.lane_of(packet)
        if lane is not None:
            assert packet.modes[lane] is not PushMode.POLL
            self._check_letter(packet, lane)
        if packet.words:
            assert lane not in self.delivering, "two write to one port"
        if lane not in self.gone and not self.loses(packet):
            for index, word in enumerate(packet.words):
                self.memory[packet.address + 4 * index] = word
        if packet.kind is RequestType.MEMORY_READ:
            assert packet.count == 1
            assert lane == packet.tag // 2
            if self.beats:
                self.memory[packet.address] = self.memory.get(packet.address, 0) + 1 & 0xFFFF_FFFF
            held = self.memory.get(packet.address, 0)
            for answer in self.answers(packet.tag // 2, packet.tag):
                self.link.answer(packet.tag, held, answer)

    def _check_letter(self, packet: Packet, lane: int) -> None:
        """A record and the dispatch behind it must be of one pass."""
        offset = packet.address - self.port(lane) - regmap.LanePort.RECORD
        if 0 <= offset < regmap.LanePort.TOKEN_RING - regmap.LanePort.RECORD:
            buffer, place = divmod(offset, regmap.LanePort.RECORD_STRIDE)
            before = self._stamps.get((lane, buffer), []) if place else []
            self._stamps[lane, buffer] = before + [word >> 16 for word in packet.words[3::4]]
        elif packet.kind is RequestType.MEMORY_WRITE:
            head = DispatchHead.unpack(packet.words[1] << 32 | packet.words[0])
            entries = DispatchPass.unpack(packet.words[3] << 32 | packet.words[2]).entries
            stamps = self._stamps.pop((lane, head.buffer), [])
            if stamps:
                assert len({*stamps}) == 1, "a record is of several passes"
                assert len(stamps) == regmap.Record.BITMAP_COUNT + entries, "a record is not whole"
                assert not head.first or stamps[0] == head.sequence & 0xFFFF, "a record is another pass's"

    def store(self, address: int, words: list[int]) -> None:
        """Write words of 64 bits to memory, as the host does."""
        for index, word in enumerate(words):
            self.memory[address + 8 * index] = word & 0xFFFF_FFFF
            self.memory[address + 8 * index + 4] = word >> 32

    def clear(self, lane: int) -> None:
        """Zero a lane's port, but for its heartbeat."""
        for address in [each for each in self.memory if each >> 16 == self.port(lane) >> 16]:
            if address != self.heartbeat(lane):
                del self.memory[address]

    def port(self, lane: int) -> int:
        """Address of a lane's port, in this host's memory."""
        return 0x2_0000_0000 + 0x1_0000 * lane

    def lane_of(self, packet: Packet) -> int | None:
        """The lane that a packet is of; None if it is a message."""
        return next((lane for lane in range(PARAMS.lanes) if packet.address >> 16 == self.port(lane) >> 16), None)

    def heartbeat(self, lane: int) -> int:
        return self.port(lane) + regmap.LanePort.HEARTBEAT

    def place(self, sequence: int, lane: int) -> int:
        """Address of a dispatch's place in the lane's ring."""
        return self.port(lane) + regmap.LanePort.RING + regmap.LanePort.RING_STRIDE * (sequence % 16)

    def dispatch(self, sequence: int, lane: int = 0) -> tuple[DispatchHead, DispatchPass] | None:
        """The dispatch in its place of the lane's ring, if it is whole."""
        place = self.place(sequence, lane)
        words = [self.memory.get(place + 4 * index, 0) for index in range(8)]
        head = DispatchHead.unpack(words[1] << 32 | words[0])
        second = DispatchPass.unpack(words[3] << 32 | words[2])
        whole = {second.stamp, words[7] >> 16, sequence & 0xFFFF} == {sequence & 0xFFFF} and head.sequence == sequence
        return (head, second) if whole else None

    def record(self, buffer: int, lane: int = 0) -> list[int]:
        """Words of 64 bits in a record buffer of the lane's port."""
        base = self.record_address(buffer, lane)
        words = [self.memory.get(base + 4 * index, 0) for index in range(regmap.Record.SIZE // 4)]
        return [low | high << 32 for low, high in zip(words[::2], words[1::2], strict=True)]

    def record_address(self, buffer: int, lane: int) -> int:
        return self.port(lane) + regmap.LanePort.RECORD + regmap.LanePort.RECORD_STRIDE * buffer

    # ------------------------------------------------------------------------------------------- registers

    def read64(self, offset: int, bar: int = 0) -> int:
        """All ones if the link is down, or goes down before the answer is there."""
        self._tag = tag = (self._tag + 1) % _TAGS
        self.link.request(RequestType.MEMORY_READ, offset & ~7, count=2, tag=tag, bar=bar)
        before = self.link.downs
        if self.link.up:
            self.until(lambda: tag in self.link.received or self.link.downs > before)
        if tag not in self.link.received:
            self.run(20)
            return ALL_ONES
        _, words = self.link.received.pop(tag)
        return words[1] << 32 | words[0]

    def read32(self, offset: int) -> int:
        return self.read64(offset) >> 8 * (offset & 4) & 0xFFFF_FFFF

    def write64(self, offset: int, value: int, bar: int = 0) -> None:
        self._write(offset, [value & 0xFFFF_FFFF, value >> 32], bar)

    def write32(self, offset: int, value: int, bar: int = 0) -> None:
        self._write(offset, [value], bar)

    def _write(self, offset: int, words: list[int], bar: int) -> None:
        self.link.request(RequestType.MEMORY_WRITE, offset, words, bar=bar)
        self.until(lambda: self.link.flushed)

    def admit(self, group: int = 0, rows: int = 1, *, tier: int = 0, request: int = 1 << 16) -> int:
        """Ask for an automatic request."""
        attributes = PageSchedAttr(automatic=1, rows=rows, group=group, tier=tier, kv_blocks=1)
        self.write64(regmap.PAGE + regmap.Page.SCHED_ATTR, attributes.pack())
        self.write64(regmap.PAGE + regmap.Page.SCHED_CMD, PageSchedCmd(id=request, stage=0).pack())
        return request

    def push(self, lane: int, register: int) -> int:
        """Offset in BAR0 of a register of PUSH."""
        return regmap.PUSH + regmap.PUSH_STRIDE * lane + register

    def poll(self, lane: int, register: int) -> int:
        """Offset in BAR0 of a poll register."""
        return regmap.POLL + regmap.POLL_STRIDE * lane + register

    def mode(self, lane: int) -> PushMode:
        """A lane's mode, as it is in this cycle."""
        return self.link.mode(lane)

    def status(self, lane: int = 0) -> PushStatus:
        return PushStatus.unpack(self.read32(self.push(lane, regmap.Push.STATUS)))

    def count(self, register: int, lane: int = 0) -> int:
        """A counter of a lane."""
        return self.read32(self.push(lane, register))

    # ------------------------------------------------------------------------------------------- lanes

    def probe(self, lane: int, generation: int) -> None:
        """Have a lane in POLL probed."""
        push = regmap.Push
        self.write64(self.push(lane, push.PORT_ADDRESS), self.port(lane))
        self.write64(self.push(lane, push.HEARTBEAT_ADDRESS), self.heartbeat(lane))
        for register, value in (
            *((push.PERIOD, _PERIOD_US), (push.COMPLETION_TIMEOUT, _TIMEOUT_US), (push.REST, _REST_US)),
            *((push.BEATS, _BEATS), (push.GENERATION, generation), (push.COMMAND, regmap.PushCommand.PROBE)),
        ):
            self.write32(self.push(lane, register), value)

    def start(self, lane: int = 0, generation: int = 1) -> None:
        """Lead a lane from POLL to PUSH."""
        self.probe(lane, generation)
        self.until(lambda: (it := self.status(lane)).mode == PushMode.PROBING and not it.needed)
        self.write32(self.push(lane, regmap.Push.COMMAND), regmap.PushCommand.PUSH)
        self.reach(lane, PushMode.PUSH)

    def reach(self, lane: int, mode: PushMode) -> None:
        self.until(lambda: self.mode(lane) == mode)

    def arrives(self, sequence: int, lane: int = 0) -> DispatchHead:
        """A dispatch, once it is in the lane's ring."""
        self.until(lambda: self.dispatch(sequence, lane) is not None)
        found = self.dispatch(sequence, lane)
        assert found is not None
        return found[0]

    def done(self, sequence: int, lane: int = 0) -> int:
        """Report a dispatch complete; gives the cycle in which CQ took it."""
        self.write32(self.entry(sequence, lane) + regmap.Completion.BATCH_DONE, sequence)
        return self.cycle - 1

    def finish(self, sequence: int, lane: int, seats: int) -> None:
        """Say which seats have finished with a dispatch."""
        self.write32(self.entry(sequence, lane) + regmap.Completion.FINISHED, seats)

    def entry(self, sequence: int, lane: int) -> int:
        """Offset in BAR0 of a dispatch's completion entry."""
        first = regmap.COMPLETION + regmap.COMPLETION_STRIDE * lane
        return first + regmap.COMPLETION_ENTRY_STRIDE * (sequence % 16)

    def committed(self, kind: CommitKind, lane: int) -> list[int]:
        """Ids of a lane's commits of this kind."""
        return [commit.id for commit in self.link.commits if (commit.kind, commit.lane) == (kind, lane)]


def next_sequence(sequence: int) -> int:
    """Sequence after this one: low halves 0 and 0xFFFF are skipped (docs/device.md §7)."""
    following = sequence + 1 & 0xFFFF_FFFF
    return following + 2 & 0xFFFF_FFFF if following & 0xFFFF == 0xFFFF else following
