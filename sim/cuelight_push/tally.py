"""What schedules count: that which went wrong, what the device did about it, and what host and lanes did."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from cuelight.regmap import FallCause, PushMode

__all__ = ["Event", "Tally"]

_CHANGES = (
    (PushMode.POLL, PushMode.PROBING),
    (PushMode.PROBING, PushMode.PUSH),
    (PushMode.PROBING, PushMode.FALLING),
    (PushMode.PUSH, PushMode.FALLING),
    (PushMode.FALLING, PushMode.POLL),
    # With the device, or the link.
    (PushMode.PROBING, PushMode.POLL),
    (PushMode.PUSH, PushMode.POLL),
)


class Event(StrEnum):
    """Faults first, then what they led to."""

    DROPPED = "completion dropped"
    TAKEN_BACK = "completion taken back by the hard block"
    DELAYED = "completion later than COMPLETION_TIMEOUT"
    DOUBLED = "completion twice"
    POISONED = "completion poisoned"
    UNSUPPORTED = "completion with UR"
    ABORTED = "completion with CA"
    LENGTH = "completion of a wrong length"
    TAG = "completion with a wrong tag"
    HARD_TIMEOUT = "completion with the hard block's timeout"
    OTHER_ERROR = "completion with another error of the hard block's"
    STILL = "heartbeat that stands still"
    UNREACHED = "read of memory that is gone"
    OUT_OF_REACH = "memory of a lane gone for a while"
    LANE_GONE = "memory of a lane gone for good, and the lane"
    WRITE_LOST = "write to a lane lost"
    RECORD_LOST = "record lost, its dispatch not"
    DISPATCH_LOST = "dispatch lost, its record not"
    DONE_LOST = "BATCH_DONE lost"
    FINISHED_LOST = "FINISHED lost"
    OLD_DONE = "BATCH_DONE of an old generation"
    OLD_COMPLETION = "heartbeat completion of an old generation"
    DOWN_BETWEEN = "link down between packets"
    DOWN_IN_RQ = "link down in a packet on RQ"
    DOWN_IN_CQ = "link down in a packet on CQ"
    DOWN_IN_CC = "link down in a packet on CC"
    DOWN_LOST = "posted write lost with the link"
    RESET_BETWEEN = "function reset between packets"
    RESET_IN_RQ = "function reset in a packet on RQ"
    RESET_IN_CQ = "function reset in a packet on CQ"
    RESET_IN_CC = "function reset in a packet on CC"
    RESET_LOST = "posted write lost at a function reset"
    ALL_ONES = "read of all ones, device gone"
    BLINK = "read of all ones, device there"
    NO_ROOM = "streams without room"
    COMMAND = "command to fall"
    NO_MASTERING = "mastering switched off"
    NO_DRIVER = "driver away for a while"

    UNWHOLE = "dispatch waited for its record"
    REPEATED = "dispatch offered again"
    RESENT = "report sent again by the host"
    TWICE = "report sent twice by the lane"
    IGNORED = "report ignored by the device"
    OVERTAKEN = "completion of ours that overtook a packet"
    POLLED = "dispatch brought by the host"
    RUN = "dispatch run"
    RESTARTED = "lane restarted"
    RECOVERED = "device opened anew"
    ADMITTED = "request admitted"
    TOKEN = "token"


@dataclass
class Tally:
    """Adds up over schedules."""

    events: Counter[Event] = field(default_factory=Counter)
    changes: Counter[tuple[PushMode, PushMode]] = field(default_factory=Counter)
    """Of lanes' modes."""
    causes: Counter[FallCause] = field(default_factory=Counter)
    cycles: int = 0

    def add(self, other: Tally) -> None:
        self.events.update(other.events)
        self.changes.update(other.changes)
        self.causes.update(other.causes)
        self.cycles += other.cycles

    def rows(self) -> dict[str, dict[str, int]]:
        """Everything that may be counted, by kind: also what never was."""
        return {
            "events": {event.value: self.events[event] for event in Event},
            "modes": {f"{old.name} to {new.name}": self.changes[old, new] for old, new in _CHANGES},
            "causes of falls": {cause.name: self.causes[cause] for cause in FallCause},
        }
