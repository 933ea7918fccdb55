"""Commands to the device, each known to be accepted or refused when the call returns."""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from cuelight.errors import CommandRefused, DeviceFull, DeviceLost, GroupResetting, NoKvCredit, TransportError
from cuelight.regmap import (
    COUNTERS,
    FIFO,
    IDENTITY,
    PAGE,
    TIER,
    TIER_STRIDE,
    Counters,
    Fifo,
    FifoRejectHead,
    Identity,
    Page,
    PageReqStatus,
    PageSchedAttr,
    PageSchedCmd,
    RejectReason,
    Tier,
)
from cuelight.transports.base import Transport

__all__ = ["CANCEL", "Commands", "Reject"]

CANCEL = 0xFFFF_FFFF
"""Target stage that cancels."""

_MASK = 0xFFFF_FFFF
_SETTLE_S = 1.0
_DEPTH = 64
_UNCLAIMED = 1024

_REMEDIES = {
    RejectReason.PAGE_DISABLED: "producer page 0 is disabled; enable it in PAGE_ENABLE",
    RejectReason.ILLEGAL_ID: "the device has no such id; use the ids it offers",
    RejectReason.STALE_EPOCH: "the request is gone; submit a new one",
    RejectReason.ALREADY_RETIRED: "the request is over; submit a new one",
    RejectReason.UNKNOWN_STAGE: "the stage is not below STAGE_COUNT; configure the device with more stages",
    RejectReason.SLOT_IN_USE: "another request lives in the slot; use the ids the device offers",
    RejectReason.REQUEST_RUNNING: "its stage is not done yet; report STAGE_DONE first",
    RejectReason.DEVICE_FULL: "no slot is offered; wait for one, or cancel a request",
    RejectReason.SLOT_NOT_OFFERED: "the slot is offered to nobody here; use the ids the device offers",
    RejectReason.BAD_ATTRIBUTE: "an attribute is out of range; keep group, rows and start within the device's limits",
    RejectReason.GROUP_RESETTING: "the lane group is being reset; try again",
    RejectReason.NO_KV_CREDIT: "the lane group has too few free KV blocks; wait for some, or ask for fewer tokens",
}

_TYPES = {
    RejectReason.DEVICE_FULL: DeviceFull,
    RejectReason.NO_KV_CREDIT: NoKvCredit,
    RejectReason.GROUP_RESETTING: GroupResetting,
}


@dataclass(frozen=True, slots=True)
class Reject:
    """A refused command that was not the driver's own."""

    id: int
    reason: RejectReason
    page: int

    def to_dict(self) -> dict[str, Any]:
        """Make it JSON-ready."""
        return {"id": self.id, "reason": self.reason.name, "page": self.page}


class Commands:
    """Producer page 0, and the only reader of the reject FIFO.

    A command is issued under `lock`; then every reject the device has counted so far is popped. As a read sees all
    earlier writes, a refusal of the command is among them or there is none.

    Parameters
    ----------
    transport : Transport
        The way to the device.

    Attributes
    ----------
    lock : threading.RLock
        Held while a command is in flight; whoever holds it knows that none is.
    unclaimed : collections.deque of Reject
        The latest refused commands that came from elsewhere.
    """

    def __init__(self, transport: Transport) -> None:
        self.lock = threading.RLock()
        self.unclaimed: collections.deque[Reject] = collections.deque(maxlen=_UNCLAIMED)
        self._transport = transport
        self._nonce = transport.read64(IDENTITY + Identity.BOOT_NONCE)
        self._fifo = threading.Lock()
        self._in_flight: int | None = None
        self._refusal: RejectReason | None = None
        self._overflowed = False
        counted, self._lost = self._read_counts()
        head = FifoRejectHead.unpack(transport.read64(FIFO + Fifo.REJECT_HEAD))
        queued = counted - self._lost
        self._popped = (queued - ((queued - head.index) & 0xFFFF if head.valid else 0)) & _MASK

    def admit(
        self, attributes: PageSchedAttr, stage: int, prepare: Callable[[int], None], *, below_floor: bool = False
    ) -> int:
        """Admit a request into the slot that the device offers.

        Parameters
        ----------
        attributes : PageSchedAttr
            For an automatic request; `automatic` 0 for a manual one.
        stage : int
            Target stage, 0 for an automatic request.
        prepare : callable
            Called with the id, before the device hears of it.
        below_floor : bool
            The KV floor of its tier is no reason to refuse it.

        Returns
        -------
        int
            The request's id.

        Raises
        ------
        CommandRefused
            The device refused it, or offers no slot.
        """
        with self.lock:
            request_id = self._offered_id()
            prepare(request_id)
            with self._lifted_floor(attributes.tier) if below_floor else contextlib.nullcontext():
                self._transport.write64(PAGE + Page.SCHED_ATTR, attributes.pack())
                self._issue(request_id, stage)
            return request_id

    def check_identity(self) -> None:
        """Check that the device is the one that was opened; to be called when it says what it should not.

        Raises
        ------
        DeviceLost
            It was reset.
        """
        if self._transport.read64(IDENTITY + Identity.BOOT_NONCE) != self._nonce:
            raise DeviceLost("The device was reset, so its requests are lost; open it again and submit them again.")

    def run(self, request_id: int, stage: int) -> None:
        """Send a waiting manual request into `stage`.

        Raises
        ------
        CommandRefused
            It is not waiting, is gone, or there is no such stage.
        """
        with self.lock:
            self._issue(request_id, stage)

    def cancel(self, request_id: int) -> bool:
        """Cancel a request; False if it is gone or retired already."""
        try:
            self.run(request_id, CANCEL)
        except CommandRefused as refusal:
            if refusal.reason in (RejectReason.STALE_EPOCH, RejectReason.ALREADY_RETIRED):
                return False
            raise
        return True

    def stage_done(self, request_id: int) -> None:
        """Report that a manual request's stage is finished; the device ignores it if none is pending."""
        self._transport.write32(PAGE + Page.STAGE_DONE, request_id)

    def park(self, request_id: int) -> None:
        """Leave an automatic request out of passes until it has a credit; the device ignores it for any other."""
        self._transport.write32(PAGE + Page.PARK, request_id)

    def credit(self, request_id: int) -> None:
        """Let a parked request go on, or not park the next time."""
        self._transport.write32(PAGE + Page.CREDIT, request_id)

    def collect_rejects(self) -> None:
        """Pop the rejects that the device has counted so far."""
        with self._fifo:
            counted, lost = self._read_counts()
            deadline = time.monotonic() + _SETTLE_S
            while self._popped != (counted - lost) & _MASK:
                head = FifoRejectHead.unpack(self._transport.read64(FIFO + Fifo.REJECT_HEAD))
                behind = (self._popped - head.index) & 0xFFFF
                if head.valid and not behind:
                    self._take(head)
                elif head.valid and behind <= _DEPTH:
                    # Counted here, but an interrupt came before its pop.
                    self._transport.write32(FIFO + Fifo.REJECT_POP, (self._popped - behind) & _MASK)
                elif time.monotonic() > deadline:
                    self.check_identity()
                    raise TransportError(
                        "The device counts rejects that its FIFO does not show; "
                        "let no other program pop this device's FIFOs."
                    )
            self._overflowed |= lost != self._lost
            self._lost = lost

    @contextlib.contextmanager
    def _lifted_floor(self, tier: int) -> Iterator[None]:
        register = TIER + TIER_STRIDE * tier + Tier.KV_FLOOR
        floor = self._transport.read32(register)
        try:
            if floor:
                self._transport.write32(register, 0)
            yield
        finally:
            if floor:
                self._transport.write32(register, floor)

    def _take(self, head: FifoRejectHead) -> None:
        reason = RejectReason(head.reason)
        if head.page == 0 and head.id == self._in_flight and self._refusal is None:
            self._refusal = reason
        else:
            self.unclaimed.append(Reject(head.id, reason, head.page))
        index, self._popped = self._popped, (self._popped + 1) & _MASK
        self._transport.write32(FIFO + Fifo.REJECT_POP, index)

    def _issue(self, request_id: int, stage: int) -> None:
        with self._fifo:
            self._in_flight, self._refusal, self._overflowed = request_id, None, False
        try:
            self._transport.write64(PAGE + Page.SCHED_CMD, PageSchedCmd(stage, request_id).pack())
            self.collect_rejects()
        finally:
            with self._fifo:
                self._in_flight, reason, overflowed = None, self._refusal, self._overflowed
        if reason is not None:
            self.check_identity()
            what = "Cancel" if stage == CANCEL else f"Stage {stage}"
            raise _TYPES.get(reason, CommandRefused)(
                f"{what} for request {request_id:#010x} was refused: {_REMEDIES[reason]}.", reason
            )
        if overflowed:
            raise TransportError(
                "The device's reject FIFO overflowed while a command was in flight, so its outcome is unknown; "
                "keep programs that write illegal commands off this device."
            )

    def _offered_id(self) -> int:
        # A page without an offer gets one within cycles if a slot is free; only then is it worth asking again.
        deadline = time.monotonic() + _SETTLE_S
        while True:
            if request_id := self._transport.read32(PAGE + Page.OFFER_ID):
                return request_id
            status = PageReqStatus.unpack(self._transport.read32(PAGE + Page.REQ_STATUS))
            if status.slot == 0xFFFF and time.monotonic() > deadline:
                raise DeviceFull(
                    f"The device offers no slot and has {status.active} requests; wait for one, or cancel a request.",
                    RejectReason.DEVICE_FULL,
                )

    def _read_counts(self) -> tuple[int, int]:
        both = self._transport.read64(COUNTERS + Counters.REJECTED)
        return both & _MASK, both >> 32
