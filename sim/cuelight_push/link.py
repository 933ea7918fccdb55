"""The hard block and the link behind it, as far as packets go."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from amaranth.hdl import Shape
from amaranth.lib.data import Layout, Struct

from cuelight.regmap import CommitKind, FallCause, PushMode
from cuelight_rtl.bus.pcie_usp.mode import TAGS
from cuelight_rtl.bus.pcie_usp.streams import (
    DWORDS,
    CcDescriptor,
    CompletionStatus,
    CqDescriptor,
    CqUser,
    LocalError,
    RcDescriptor,
    RcError,
    RcUser,
    RequestType,
    RqDescriptor,
    RqUser,
)
from cuelight_rtl.params import Params

from .native import Native
from .tally import Event, Tally

__all__ = ["Answer", "Commit", "Link", "Packet"]

_LIMIT = 4000
"""Cycles after which what is waited for has not come."""
_CREDITS = 32
_MASTERING = 1 << 2
_LATENCY = (1, 2, 3, 5, 8, 20)
"""Cycles that a packet may take through the hard block, whatever passes on the other stream."""
_BUFFERED = 8
"""Packets of RQ for which the hard block has room."""
_APERTURES = {0: 16, 2: 12}
_DOWN = {
    "": Event.DOWN_BETWEEN,
    "RQ": Event.DOWN_IN_RQ,
    "CQ": Event.DOWN_IN_CQ,
    "CC": Event.DOWN_IN_CC,
}
_RESET = {
    "": Event.RESET_BETWEEN,
    "RQ": Event.RESET_IN_RQ,
    "CQ": Event.RESET_IN_CQ,
    "CC": Event.RESET_IN_CC,
}
_STREAMS_IN = ("m_axis_cq", "m_axis_rc")


@dataclass
class Answer:
    """How a heartbeat read is answered, some cycles later; ``value`` None: with what the memory holds."""

    delay: int = 10
    value: int | None = None
    changes: dict[str, int] = field(default_factory=dict)
    """Fields of the completion's descriptor that are not as they should be."""
    taken_back: bool = False
    """The hard block says at its end that it is to be thrown away."""


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
    count: int = 0
    tag: int = 0
    number: int = 0
    """With which the hard block tells that it has sent it."""


@dataclass(frozen=True)
class Commit:
    """A lane's, in a cycle."""

    cycle: int
    kind: CommitKind
    lane: int
    id: int


@dataclass(frozen=True)
class _Answer:
    """A completion that is on its way to us."""

    due: int
    """Cycle from which on it may come."""
    packet: int
    user: int
    lane: int
    generation: int
    """Of the lane's, when it was asked for."""


class _Fields:
    """Packs and unpacks the fields of a struct, many times a second."""

    def __init__(self, shape: type[Struct]) -> None:
        self._places: dict[str, tuple[int, int]] = {
            name: (each.offset, Shape.cast(each.shape).width) for name, each in Layout.cast(shape)
        }

    def pack(self, **values: int) -> int:
        return sum(value << self._places[name][0] for name, value in values.items())

    def unpack(self, bits: int, name: str) -> int:
        offset, width = self._places[name]
        return bits >> offset & (1 << width) - 1


_CQ, _CQ_USER, _CC = _Fields(CqDescriptor), _Fields(CqUser), _Fields(CcDescriptor)
_RQ, _RQ_USER = _Fields(RqDescriptor), _Fields(RqUser)
_RC, _RC_USER = _Fields(RcDescriptor), _Fields(RcUser)


class Link:
    """The shell just after reset, and what the hard block has of packets both ways.

    RQ and CC are each in order, but nothing is said of one against the other: their packets take as long as they like
    to the wire. Behind the wire is ``deliver``, which is told of each packet of ours.

    Parameters
    ----------
    params
        Sizes of the scheduler.
    random
        Makes every choice.
    deliver
        Called with each packet of RQ when it is out.
    """

    def __init__(self, params: Params, random: Random, deliver: Callable[[Packet], None]) -> None:
        self.native = Native(params)
        self.cycle = 0
        self.stall = self.reply_stall = 0.0
        """How probable it is in each cycle that RQ has no room, and CC."""
        self.holds = False
        """Whether packets of RQ stay in the hard block."""
        self.up = True
        self.downs = 0
        """How often the link went down."""
        self.cut: tuple[int, int] | None = None
        """Cycle in which the link will go down, whatever goes on then, and for how many cycles."""
        self.commits: list[Commit] = []
        self.tally = Tally()
        self._random, self._deliver = random, deliver
        self._lanes = range(params.lanes)
        self._modes = [PushMode.POLL] * params.lanes
        self._generations = [0] * params.lanes
        """How often each lane was probed."""
        view = self.native.view
        self._rq_valid, self._rq_ready = view("s_axis_rq_tvalid"), view("s_axis_rq_tready")
        self._cc_valid, self._cc_ready = view("s_axis_cc_tvalid"), view("s_axis_cc_tready")
        self._cq_valid, self._cq_ready = view("m_axis_cq_tvalid"), view("m_axis_cq_tready")
        self._rc_valid, self._departs = view("m_axis_rc_tvalid"), view("pcie_rq_seq_num_vld0")
        self._departing, self._poison = view("pcie_rq_seq_num0"), view("cfg_local_error_valid")
        self._asks_for, self._has_credit = view("pcie_cq_np_req"), view("pcie_cq_np_req_count")
        self._commits, self._all_modes = view("commit_valid"), view("modes")
        self._seen_modes = 0
        self._clear()
        self._hold_reset(8)

    def _clear(self) -> None:
        self._requests: deque[list[tuple[int, int, int]]] = deque()
        """Beats still to come of each request to us: data, dwords, user."""
        self._request_begun = False
        self._credits = 0
        self._answers: list[_Answer] = []
        self._incoming: Packet | None = None
        self._requested: deque[tuple[int, Packet]] = deque()
        self._completed: deque[tuple[int, tuple[int, int]]] = deque()
        """Cycle from which on a completion of ours may be on the wire; when it was taken, and its packet."""
        self._partial: list[int] = []
        """Beats of the completion on CC."""
        self._departed: list[int] = []
        self.received: dict[int, tuple[CompletionStatus, list[int]]] = {}
        """Completions of ours, by tag."""

    # ------------------------------------------------------------------------------------------- cycles

    def run(self, cycles: int = 1) -> None:
        """Let cycles pass."""
        end = self.cycle + cycles
        while self.cycle < end:
            self._advance(end)

    def until(self, what: Callable[[], bool], limit: int = _LIMIT) -> None:
        """Let cycles pass until something is so, which is looked at whenever something has shown."""
        end = self.cycle + limit
        while not what():
            if self.cycle >= end:
                raise AssertionError("it does not come")
            self._advance(end)

    def _advance(self, end: int) -> None:
        """Some cycles, up to the first one in which something goes on."""
        if self.up and self.cut and self.cycle >= self.cut[0]:
            self.go_down(self.cut[1])
        if not self.up:
            self._hold_reset(min(end, self._up_at) - self.cycle)
            self.up = self.cycle >= self._up_at
            return
        quiet = self._quiet(end) - self.cycle
        if quiet > 0:
            passed = self.native.rest(quiet)
            self.cycle += passed
            if passed == quiet:
                return
        self._step()

    def _quiet(self, end: int) -> int:
        """The next cycle in which something is to be put in."""
        if self._requests or self._departed:
            return self.cycle
        if self.cut:
            end = min(end, self.cut[0])
        for answer in self._answers:
            end = min(end, answer.due)
        if self._requested and not self.holds:
            end = min(end, self._requested[0][0])
        return min(end, self._completed[0][0]) if self._completed else end

    def _step(self) -> None:
        """A cycle in which something may go on."""
        random = self._random
        room = len(self._requested) < _BUFFERED
        self._rq_ready.value = takes_rq = room and (not self.stall or random.random() >= self.stall)
        self._cc_ready.value = takes_cc = not self.reply_stall or random.random() >= self.reply_stall
        asks = bool(self._requests) and self._put_request()
        answers = bool(self._answers) and self._put_answer()
        if self._departed:
            self._departing.value, self._departs.value = self._departed.pop(0), 1
        self.native.settle()
        self._look(takes_rq, takes_cc)
        if asks and self._cq_ready.value:
            beats = self._requests[0]
            del beats[0]
            self._request_begun = bool(beats)
            if not beats:
                self._requests.popleft()
        self.native.tick()
        self.cycle += 1
        if asks:
            self._cq_valid.value = 0
        if answers:
            self._rc_valid.value = 0
        self._departs.value = self._rq_ready.value = self._cc_ready.value = self._poison.value = 0
        self._send()

    def _put_request(self) -> bool:
        native = self.native
        if self._requests:
            beat, dwords, user = self._requests[0][0]
            posted = self._request_begun or _CQ.unpack(beat, "kind") == RequestType.MEMORY_WRITE
            if posted or self._credits:
                native.set("m_axis_cq_tvalid", 1)
                native.set("m_axis_cq_tdata", beat)
                native.set("m_axis_cq_tkeep", (1 << dwords) - 1)
                native.set("m_axis_cq_tlast", len(self._requests[0]) == 1)
                native.set("m_axis_cq_tuser", user)
                return True
        return False

    def _put_answer(self) -> bool:
        due = next((each for each in self._answers if each.due <= self.cycle), None)
        if due is None:
            return False
        self._answers.remove(due)
        self.tally.events[Event.OLD_COMPLETION] += due.generation != self._generations[due.lane]
        self.native.set("m_axis_rc_tvalid", 1)
        self.native.set("m_axis_rc_tdata", due.packet)
        self.native.set("m_axis_rc_tuser", due.user)
        self.native.set("m_axis_rc_tkeep", 0x0F)
        self.native.set("m_axis_rc_tlast", 1)
        return True

    def _look(self, takes_rq: bool, takes_cc: bool) -> None:
        """What shows in a settled cycle."""
        get = self.native.get
        if valid := self._commits.value:
            for lane in self._lanes:
                if valid >> lane & 1:
                    kind, what = CommitKind(get(f"commit_kind_{lane}")), get(f"commit_id_{lane}")
                    self.commits.append(Commit(self.cycle, kind, lane, what))
        if self._all_modes.value != self._seen_modes:
            self._note_modes()
        if self._cq_valid.value and self._cq_ready.value and not self._request_begun:
            self._credits -= _CQ.unpack(self._requests[0][0][0], "kind") == RequestType.MEMORY_READ
        self._credits = min(self._credits + (self._asks_for.value & 1), _CREDITS)
        self._has_credit.value = self._credits
        if self._cc_valid.value and takes_cc:
            self._partial.append(get("s_axis_cc_tdata"))
            if get("s_axis_cc_tlast"):
                packet = sum(beat << 32 * DWORDS * place for place, beat in enumerate(self._partial))
                self._partial = []
                self._completed.append((self._arrival(self._completed), (self.cycle, packet)))
        if self._rq_valid.value:
            if self._incoming is None:
                self._incoming = Packet(self.cycle, list(self._modes))
            if takes_rq:
                self._take_beat(self._incoming)

    def _note_modes(self) -> None:
        modes = self._seen_modes = self._all_modes.value
        for lane, before in enumerate(self._modes):
            now = PushMode(modes >> 2 * lane & 3)
            if now is not before:
                self.tally.changes[before, now] += 1
                self._generations[lane] += now is PushMode.PROBING
                if now is PushMode.FALLING:
                    self.tally.causes[FallCause(self.native.get("causes") >> 4 * lane & 15)] += 1
                self._modes[lane] = now

    def mode(self, lane: int) -> PushMode:
        """A lane's mode, as it was in the last cycle."""
        return PushMode(self.native.get("modes") >> 2 * lane & 3)

    def _arrival(self, pipe: Sequence[tuple[int, object]]) -> int:
        """When a packet is through the hard block: never before the one in front of it."""
        return max([self.cycle + self._random.choice(_LATENCY), *(when for when, _ in pipe)])

    def _take_beat(self, packet: Packet) -> None:
        get = self.native.get
        data, keep, last, user = (get(f"s_axis_rq_t{name}") for name in ("data", "keep", "last", "user"))
        first = not packet.words
        packet.words += [data >> 32 * index & 0xFFFF_FFFF for index in range(DWORDS) if keep >> index & 1]
        if first:
            self._check_head(packet, data, user)
        if last:
            self._incoming = None
            del packet.words[:4]
            assert len(packet.words) == (0 if packet.kind is RequestType.MEMORY_READ else packet.count)
            self._requested.append((self._arrival(self._requested), packet))
        else:
            assert keep == 0xFF

    def _check_head(self, packet: Packet, data: int, user: int) -> None:
        """A packet must be one that a hard block takes."""
        count = packet.count = _RQ.unpack(data, "count")
        packet.address, packet.tag = _RQ.unpack(data, "address") << 2, _RQ.unpack(data, "tag")
        packet.kind = RequestType(_RQ.unpack(data, "kind"))
        packet.number = _RQ_USER.unpack(user, "sequence_high") << 4 | _RQ_USER.unpack(user, "sequence_low")
        assert _RQ.unpack(data, "traffic_class") == _RQ.unpack(data, "attributes") == 0
        assert packet.address % 4096 + 4 * count <= 4096
        assert count <= 32 << self.native.get("cfg_max_payload")
        assert _RQ_USER.unpack(user, "first_be") == 0xF
        assert _RQ_USER.unpack(user, "last_be") == (0xF if count > 1 else 0)

    def _send(self) -> None:
        """Onto the wire, where nothing overtakes."""
        if self._requested and self._requested[0][0] <= self.cycle and not self.holds:
            _, packet = self._requested.popleft()
            self._departed.append(packet.number)
            self._deliver(packet)
        if self._completed and self._completed[0][0] <= self.cycle:
            _, (taken, raw) = self._completed.popleft()
            self.tally.events[Event.OVERTAKEN] += bool(self._requested) and self._requested[0][1].cycle < taken
            words = [raw >> 32 * (3 + place) & 0xFFFF_FFFF for place in range(_CC.unpack(raw, "count"))]
            self.received[_CC.unpack(raw, "tag")] = CompletionStatus(_CC.unpack(raw, "status")), words

    # ------------------------------------------------------------------------------------------- requests to us

    def request(
        self,
        kind: RequestType,
        offset: int,
        words: Sequence[int] = (),
        *,
        count: int = 0,
        tag: int = 0,
        bar: int = 0,
        enables: tuple[int, int] = (0xF, 0xF),
    ) -> None:
        """Queue a request of the host, for ``count`` dwords or with ``words``; while the link is down it is lost."""
        if not self.up:
            return
        count = count or len(words)
        head = _CQ.pack(address=offset >> 2, count=count, kind=kind, tag=tag, bar=bar, aperture=_APERTURES[bar])
        dwords = [head >> 32 * place & 0xFFFF_FFFF for place in range(4)] + list(words)
        first, last = enables[0], enables[1] if count > 1 else 0
        beats = []
        for start in range(0, len(dwords), DWORDS):
            part = dwords[start : start + DWORDS]
            user = _CQ_USER.pack(first_be=first, last_be=last, sop=1) if not start else 0
            beats.append((sum(word << 32 * place for place, word in enumerate(part)), len(part), user))
        self._requests.append(beats)

    def drop_poisoned_write(self) -> None:
        """What the hard block does with one: it tells of it, and that is all."""
        self.native.set("cfg_local_error_out", LocalError.POISONED_WRITE_DROPPED)
        self.native.set("cfg_local_error_valid", 1)
        self._step()

    @property
    def flushed(self) -> bool:
        """Whether the device has taken every request."""
        return not self._requests or not self.up

    def answer(self, tag: int, held: int, how: Answer) -> None:
        """Complete a read of ours, in some cycles; ``held`` is what the memory holds."""
        value = held if how.value is None else how.value
        fields = {"count": 1, "byte_count": 4, "completed": 1, "tag": tag, "status": CompletionStatus.SUCCESSFUL}
        packet = _RC.pack(**{**fields, "error": RcError.NONE, **how.changes}) | value << 96
        lane = tag // TAGS
        user = _RC_USER.pack(discontinue=how.taken_back)
        self._answers.append(_Answer(self.cycle + how.delay, packet, user, lane, self._generations[lane]))

    # ------------------------------------------------------------------------------------------- resets

    def master(self, may: bool) -> None:
        """Let the function master, or not."""
        self.native.set("cfg_function_status", _MASTERING * may)

    @property
    def mastering(self) -> bool:
        return bool(self.native.get("cfg_function_status"))

    @property
    def inside(self) -> str:
        """The stream on which a packet has begun and not ended, if there is one."""
        if self._incoming is not None and self._incoming.words:
            return "RQ"
        if self._request_begun:
            return "CQ"
        return "CC" if self._partial else ""

    def go_down(self, cycles: int) -> None:
        """The link ends here and now, and whatever is on its way with it. Some cycles later the device is as new."""
        self.tally.events[_DOWN[self.inside]] += 1
        self._count_lost(Event.DOWN_LOST)
        self.up = False
        self._clear()
        self.downs += 1
        self.cut = None
        self._up_at = self.cycle + cycles

    def _hold_reset(self, cycles: int) -> None:
        native = self.native
        for port in (
            *(f"{stream}_tvalid" for stream in _STREAMS_IN),
            *("pcie_rq_seq_num_vld0", "pcie_cq_np_req_count", "cfg_flr_in_process"),
            *("cfg_function_status", "cfg_interrupt_msix_enable", "s_axis_rq_tready", "s_axis_cc_tready"),
        ):
            native.set(port, 0)
        native.set("user_reset", 1)
        for _ in range(cycles):
            native.settle()
            self._note_modes()
            native.tick()
            self.cycle += 1
        native.set("user_reset", 0)
        native.settle()
        self._note_modes()

    def reset_function(self, *, loses: bool) -> None:
        """A function-level reset: what has begun ends, what waits does not come, what is on its way may be lost."""
        self.tally.events[_RESET[self.inside]] += 1
        begun = [self._requests[0]] if self._request_begun else []
        self._requests = deque(begun)
        self._answers = []
        self.native.set("cfg_function_status", 0)
        self.native.set("cfg_interrupt_msix_enable", 0)
        self.native.set("cfg_flr_in_process", 1)
        if loses:
            self._count_lost(Event.RESET_LOST)
            self._requested.clear()
            self._completed.clear()
        before = self.downs
        self.until(lambda: bool(self.native.get("cfg_flr_done")) or self.downs > before)
        if self.downs > before:
            return
        assert not self.inside, "a packet was broken off"
        self._answers = []
        self.native.set("cfg_flr_in_process", 0)
        self.run(4)
        self.received = {}

    def _count_lost(self, what: Event) -> None:
        self.tally.events[what] += sum(packet.kind is RequestType.MEMORY_WRITE for _, packet in self._requested)
