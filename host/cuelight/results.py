"""What comes back from the device: tokens, retirements, rejects; one thread takes them and wakes who waits."""

from __future__ import annotations

import threading
import time

from cuelight.commands import Commands
from cuelight.errors import CuelightError, DeviceLost, LaneError, TransportError
from cuelight.journal import Journal
from cuelight.lanes.faults import LaneFault
from cuelight.lanes.types import LaneToken, TokenStatus
from cuelight.regmap import COUNTERS, FIFO, Counters, Fifo, FifoRetireHead, RetireReason
from cuelight.request import Finish, Request
from cuelight.room import Room
from cuelight.transports.base import Transport

__all__ = ["Results"]

_MASK = 0xFFFF_FFFF
_CHECK_S = 1.0
_SETTLE_S = 1.0
_PATIENCE_S = 2.0
# Plain numbers, which are compared with those of every token.
_ALTERNATIVE = int(TokenStatus.ALTERNATIVE)
_FINISH: dict[int, Finish | None] = {
    int(TokenStatus.MORE): None,
    int(TokenStatus.END_OF_TEXT): Finish.END_OF_TEXT,
    int(TokenStatus.LENGTH): Finish.LENGTH,
}


class Results:
    """The only reader of token rings and of the retirement FIFO, in a thread of its own.

    A lane writes a request's tokens before the completion that lets it retire, so whoever sees the retirement entry
    first and drains the rings then has all of them. A slot is reused only after its entry was popped; its KV blocks
    and itself become free for the host after that.

    Parameters
    ----------
    transport : Transport
        The way to the device.
    commands : Commands
        For rejects that nobody waits for, and cancels of broken requests.
    room : Room
        Where slots and blocks go back to.
    journal : Journal
        Takes over what its lane, or the whole device, has lost.
    """

    def __init__(self, transport: Transport, commands: Commands, room: Room, journal: Journal) -> None:
        self._transport = transport
        self._commands = commands
        self._room = room
        self._journal = journal
        self._changed = threading.Condition()
        self._live: dict[int, Request] = {}
        self._swept: set[int] = set()
        self._stopping = False
        head = FifoRetireHead.unpack(transport.read64(FIFO + Fifo.RETIRE_HEAD))
        retired = transport.read32(COUNTERS + Counters.RETIRED)
        self._popped = (retired - ((retired - head.index) & 0xFFFF if head.valid else 0)) & _MASK
        self._thread = threading.Thread(target=self._run, name="cuelight-results", daemon=True)
        self._thread.start()

    @property
    def live(self) -> tuple[Request, ...]:
        """Requests whose retirement has not been seen."""
        with self._changed:
            return tuple(self._live.values())

    def expect(self, request: Request) -> None:
        """Deliver to `request` from now on; called before the device hears of it."""
        with self._changed:
            self._live[request.id] = request

    def holds(self, request: Request) -> bool:
        """Whether `request` lives on this device."""
        with self._changed:
            return self._live.get(request.id) is request

    def forget(self, request: Request) -> bool:
        """Deliver no more to a request that never lived; False if it has retired or failed already."""
        with self._changed:
            return self._live.pop(request.id, None) is not None

    def tell(self, request: Request) -> None:
        """Park or credit a request on this device, if it lives here, as its host has said."""
        with self._commands.lock:
            if self.holds(request):
                news = request.take_news()
                if news > 0:
                    self._write_mask(request)
                for _ in range(news):
                    self._commands.credit(request.id)
                if news < 0:
                    self._commands.park(request.id)

    def _write_mask(self, request: Request) -> None:
        # Before its credit, so no pass has it, and its lane looks at its mask only in passes. The slot may be
        # another's already: a retired request is known here for a moment longer.
        segment = self._transport.segment
        if request.mask is not None and segment.holds(request.slot, request.id):
            segment.write_mask(request.slot, request.next_position, request.mask)

    def sweep(self, group: int) -> None:
        """Treat what the reset of a lane group leaves on the device as it treats the rest: its lane is lost.

        That is whatever was parked and had no seat.
        """
        for request in self.live:
            if request.group == group:
                # With the lock held: whoever sees the retirement sees what it means.
                with self._changed:
                    if self._commands.cancel(request.id):
                        self._swept.add(request.id)

    def wait_empty(self, timeout_s: float) -> bool:
        """Wait until nothing lives; False if something still does after `timeout_s` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._live, timeout_s)

    def fail(self, error: CuelightError) -> None:
        """End all that lives with `error`, and let nothing in any more."""
        self._room.close(error)
        with self._changed:
            lost = tuple(self._live.values())
            self._live.clear()
            self._changed.notify_all()
        for request in lost:
            request.fail(error)

    def stop(self) -> None:
        """Stop the thread; it looks at the bell once a second at least."""
        self._stopping = True
        self._transport.segment.ring_host()
        if self._thread is not threading.current_thread():
            self._thread.join(2 * _CHECK_S)

    def _run(self) -> None:
        try:
            bell = self._transport.segment.host_bell()
            while not self._stopping:
                self._deliver_tokens()
                self._retire()
                self._commands.collect_rejects()
                before, bell = bell, self._transport.wait(bell, _CHECK_S)
                if bell == before and self._live:
                    self._check_device()
        except DeviceLost as error:
            self._room.close(error)
            with self._changed:
                # With the lock held: whoever looks for a request finds it here or there.
                lost = tuple(self._live.values())
                self._live.clear()
                self._journal.lose_device(self._transport, lost, error)
                self._changed.notify_all()
        except CuelightError as error:
            if not self._stopping:
                self.fail(error)
        except Exception as error:
            self.fail(
                TransportError(f"The driver's own thread failed ({error!r}); open the device again and report this.")
            )
            raise

    def _deliver_tokens(self) -> None:
        came: dict[Request, None] = {}
        try:
            for lane in range(self._transport.segment.shape.lanes):
                tokens = self._transport.segment.take_tokens(lane)
                time_ns = time.monotonic_ns()
                for token in tokens:
                    # A lane may still post for a request that its group's reset has ended.
                    if (request := self._live.get(token.request_id)) is not None:
                        came[request] = None
                        self._deliver(lane, request, token, time_ns)
        finally:
            for request in came:
                request.announce()

    def _deliver(self, lane: int, request: Request, token: LaneToken, time_ns: int) -> None:
        _, position, number, logprob, status = token
        if status == _ALTERNATIVE:
            request.propose(position, number, logprob)
            return
        try:
            if status not in _FINISH:
                raise LaneError(
                    f"Lane {lane} gave up on request {request.id:#010x} ({_describe_fault(token)}); "
                    "correct the request or restart the lane."
                )
            if position >= request.whole_at and position == request.next_position:
                self._publish(request, position)
            if request.deliver(position, number, logprob, _FINISH[status], time_ns):
                self.tell(request)
            self._journal.delivered[request.group] += 1
            self._journal.tier_tokens[request.tier] += 1
        except LaneError as error:
            request.blame(error)
            self._commands.cancel(request.id)

    def _publish(self, request: Request, position: int) -> None:
        # The token at `position` comes from rows that have written everything before it.
        if request.lease:
            positions = self._room.block_positions(request.group)
            self._room.publish(request.group, request.lease, request.sequence)
            request.whole_at = (position // positions + 1) * positions

    def _retire(self) -> None:
        deadline = time.monotonic() + _SETTLE_S
        while self._popped != self._transport.read32(COUNTERS + Counters.RETIRED):
            head = FifoRetireHead.unpack(self._transport.read64(FIFO + Fifo.RETIRE_HEAD))
            # Just after a retirement or a pop the head may be some cycles behind.
            if not head.valid or head.index != self._popped & 0xFFFF:
                if time.monotonic() > deadline:
                    self._commands.check_identity()
                    raise TransportError(
                        "The device counts retirements that its FIFO does not show; "
                        "let no other program pop this device's FIFOs."
                    )
                continue
            self._deliver_tokens()
            self._transport.write32(FIFO + Fifo.RETIRE_POP, self._popped)
            self._popped = (self._popped + 1) & _MASK
            deadline = time.monotonic() + _SETTLE_S
            with self._changed:
                request = self._live.pop(head.id, None)
                lane_lost = head.reason == RetireReason.LANE_LOST or head.id in self._swept
                self._swept.discard(head.id)
                self._changed.notify_all()
            if request is not None and request.lease:
                with self._room.held():
                    self._room.give(request.group, request.lease, keep=not request.blamed)
                    if lane_lost:
                        self._lose(request)
                if not lane_lost:
                    request.retire(cancelled=head.reason == RetireReason.CANCELLED)

    def _lose(self, request: Request) -> None:
        error = LaneError(f"Lane group {request.group} was reset while the request lived; submit it again.")
        self._journal.lose((request,), error)

    def _check_device(self) -> None:
        self._commands.check_identity()
        if not self._transport.moves(_PATIENCE_S):
            raise DeviceLost(
                f"The device answers but does nothing for {_PATIENCE_S:g} s; open it again, and submit requests again."
            )


def _describe_fault(token: LaneToken) -> str:
    if token.finish == TokenStatus.LANE_ERROR and token.token in {*LaneFault}:
        return LaneFault(token.token).name.lower().replace("_", " ")
    return f"error {token.token}, status {token.finish}"
