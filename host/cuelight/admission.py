"""How a request gets onto the device: room first, then the slot's record, then the command."""

from __future__ import annotations

import contextlib
import time

import numpy as np

from cuelight.blocks import Lease
from cuelight.commands import CANCEL, Commands
from cuelight.errors import CommandRefused, CuelightError, DeviceLost
from cuelight.manual import ManualRequest
from cuelight.regmap import PageSchedAttr, RejectReason
from cuelight.request import Request
from cuelight.results import Results
from cuelight.room import Room
from cuelight.segment import Segment

__all__ = ["Admission"]


class Admission:
    """Admits requests; whatever goes wrong, and wherever it is interrupted, leaves no slot and no block behind."""

    def __init__(self, segment: Segment, commands: Commands, results: Results, room: Room) -> None:
        self._segment = segment
        self._commands = commands
        self._results = results
        self._room = room

    def admit(self, request: Request, timeout_s: float, *, again: bool = False) -> None:
        """Admit a request in automatic mode, from where it stands.

        Parameters
        ----------
        request : Request
            The request.
        timeout_s : float
            Longest wait for room, in seconds.
        again : bool
            It had room before, so it comes before all who wait, and its tier's KV floor does not hold for it.

        Raises
        ------
        DeviceFull, NoKvCredit
            There was no room in time.
        CommandRefused
            The device refused it.
        DeviceLost
            The device is gone, and the journal does not know the request.
        """
        deadline = time.monotonic() + timeout_s
        tokens = request.sequence
        while True:
            # The last row is always run: its output is the next token.
            left_s = max(0.0, deadline - time.monotonic())
            lease = self._room.take(request.group, request.tier, request.kv_blocks, left_s, tokens[:-1], again=again)
            try:
                self._admit(request, len(tokens), lease, again)
                return
            except _Outdated:
                self._room.give(request.group, lease)

    def _admit(self, request: Request, tokens: int, lease: Lease, again: bool) -> None:
        positions = self._room.block_positions(request.group)
        start = lease.hits * positions
        attributes = PageSchedAttr(
            automatic=1,
            stepped=request.stepped,
            tier=request.tier,
            group=request.group,
            kv_blocks=request.kv_blocks,
            rows=tokens - start,
            start=start,
        )
        begun = False

        def prepare(request_id: int) -> None:
            nonlocal begun
            # Under the command lock: a group that was closed before is not admitted to, and one that is closed
            # later is reset after the admission. The same holds for what a lane has lost, and for floors: a higher
            # tier may have taken room later and been admitted sooner.
            self._room.check(request.group)
            if not self._room.is_current(request.group, lease):
                raise _Outdated
            if not again and not self._room.keeps_floor(request.group, request.tier):
                raise _Outdated
            slot = request_id & 0xFFFF
            if request.mask is not None:
                self._segment.write_mask(slot, tokens, request.mask)
            self._segment.write_slot_record(slot, request.record(request_id, np.array(lease.table, np.int32)))
            request.begin(request_id, lease, positions)
            begun = True
            self._results.expect(request)

        try:
            self._commands.admit(attributes, 0, prepare, below_floor=again)
        except _Outdated:
            raise
        except BaseException as error:
            withdrawn = self._withdraw(request, lease, begun, refused=isinstance(error, CommandRefused))
            if withdrawn or not isinstance(error, DeviceLost):
                raise

    def admit_manual(self, stage: int, timeout_s: float) -> ManualRequest:
        """Admit a request in manual mode; parameters and errors as in `Device.admit`."""
        self._room.take_slot(timeout_s)
        offered: list[int] = []

        def prepare(request_id: int) -> None:
            self._room.check_open()
            offered.append(request_id)

        try:
            request_id = self._commands.admit(PageSchedAttr(), stage, prepare)
        except BaseException as error:
            if offered and not isinstance(error, CommandRefused):
                # Interrupted, nobody knows where: it may live.
                with contextlib.suppress(CuelightError):
                    self._commands.cancel(offered[0])
            self._room.give_slot()
            raise
        return ManualRequest(request_id, self._commands, self._room)

    def _withdraw(self, request: Request, lease: Lease, begun: bool, refused: bool) -> bool:
        """Undo an admission; False if the request has become someone else's business."""
        if begun and not refused:
            # Interrupted, nobody knows where: if it lives, its retirement gives its room back.
            try:
                self._commands.run(request.id, CANCEL)
                return True
            except CommandRefused as refusal:
                if refusal.reason != RejectReason.STALE_EPOCH:
                    return True
            except CuelightError:
                pass
        if begun and not self._results.forget(request):
            return False
        self._room.give(request.group, lease)
        return True


class _Outdated(Exception):
    """The lane has lost the blocks that were found, or they are below the tier's floor by now."""
