"""How a request gets onto the device: room first, then the slot's record, then the command."""

from __future__ import annotations

import contextlib
import dataclasses

import numpy as np

from cuelight.blocks import Lease
from cuelight.commands import CANCEL, Commands
from cuelight.errors import CommandRefused, CuelightError
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

    def admit(self, request: Request, timeout_s: float) -> None:
        """Admit a request in automatic mode, from where it stands.

        Parameters
        ----------
        request : Request
            The request.
        timeout_s : float
            Longest wait for room, in seconds.

        Raises
        ------
        DeviceFull, NoKvCredit
            There was no room in time.
        CommandRefused
            The device refused it.
        """
        record = request.record
        # The last row is always run: its output is the first new token.
        lease = self._room.take(request.group, request.tier, request.kv_blocks, timeout_s, record.prompt[:-1])
        start = lease.hits * self._room.block_positions(request.group)
        attributes = PageSchedAttr(
            automatic=1,
            tier=request.tier,
            group=request.group,
            kv_blocks=request.kv_blocks,
            rows=len(record.prompt) - start,
            start=start,
        )

        def prepare(request_id: int) -> None:
            # Under the command lock: a group that was closed before is not admitted to, and one that is closed
            # later is reset after the admission.
            self._room.check(request.group)
            table = np.array(lease.table, np.int32)
            self._segment.write_slot_record(
                request_id & 0xFFFF, dataclasses.replace(record, request_id=request_id, block_table=table)
            )
            request.begin(request_id, lease, start)
            self._results.expect(request)

        try:
            self._commands.admit(attributes, 0, prepare)
        except BaseException as error:
            self._withdraw(request, lease, refused=isinstance(error, CommandRefused))
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

    def _withdraw(self, request: Request, lease: Lease, refused: bool) -> None:
        if request.id and not refused:
            # Interrupted, nobody knows where: if it lives, its retirement gives its room back.
            try:
                self._commands.run(request.id, CANCEL)
                return
            except CommandRefused as refusal:
                if refusal.reason != RejectReason.STALE_EPOCH:
                    return
            except CuelightError:
                pass
        if not request.id or self._results.forget(request):
            self._room.give(request.group, lease)
