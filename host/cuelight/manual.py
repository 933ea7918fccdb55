"""Manual mode: the host walks a request through the stages itself."""

from __future__ import annotations

from cuelight.commands import Commands
from cuelight.room import Room

__all__ = ["ManualRequest"]


class ManualRequest:
    """A request in manual mode; made by `Device.admit`.

    It is RUNNING(stage) from admission, WAITING after `stage_done`, RUNNING again after `run`. It uses no queue, lane,
    seat or KV credit, and lives until it is cancelled.

    Attributes
    ----------
    id : int
        Request id, `epoch << 16 | slot`.
    """

    def __init__(self, request_id: int, commands: Commands, room: Room) -> None:
        self.id = request_id
        self._commands = commands
        self._room = room

    def stage_done(self) -> None:
        """Report that its stage is finished; twice is the same as once."""
        self._room.check_open()
        self._commands.stage_done(self.id)

    def run(self, stage: int) -> None:
        """Send it into `stage`.

        Raises
        ------
        CommandRefused
            Its stage is not done, there is no such stage, or it was cancelled.
        """
        self._room.check_open()
        self._commands.run(self.id, stage)

    def cancel(self) -> bool:
        """Free its slot at once; False if that was done before."""
        self._room.check_open()
        cancelled = self._commands.cancel(self.id)
        if cancelled:
            self._room.give_slot()
        return cancelled
