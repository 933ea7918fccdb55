"""A run's event trace in a file: one that Perfetto opens, with the events themselves beside what it shows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from cuelight.errors import InvalidArgument
from cuelight.perfetto import trace_events
from cuelight.regmap import CommitKind
from cuelight.timeline import Timeline, build_timeline
from cuelight.trace import Event

__all__ = ["Recording"]

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Recording:
    """Events in order, the device's STAGE_COUNT, and titles for request ids."""

    events: tuple[Event, ...]
    stage_count: int
    labels: Mapping[int, str] = field(default_factory=dict)

    def timeline(self) -> Timeline:
        """Derive each request's bars."""
        return build_timeline(self.events, self.stage_count)

    def save(self, path: Path) -> None:
        """Write it as JSON in the Trace Event Format.

        Raises
        ------
        InvalidArgument
            The file can't be written.
        """
        content = {
            "traceEvents": trace_events(self.timeline(), self.events, self.labels),
            "displayTimeUnit": "ms",
            "cuelight": {
                "format": FORMAT,
                "stage_count": self.stage_count,
                "labels": {str(request_id): label for request_id, label in self.labels.items()},
                "events": [
                    [event.time_ns, int(event.kind), event.lane, event.id, event.stage, event.detail]
                    for event in self.events
                ],
            },
        }
        try:
            path.write_text(json.dumps(content))
        except OSError as error:
            raise InvalidArgument(f"{path} can't be written ({error.strerror}); name another file.") from error

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file that `save` wrote.

        Raises
        ------
        InvalidArgument
            The file can't be read or is no such file.
        """
        try:
            content = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            cause = error.strerror if isinstance(error, OSError) else "it is no JSON"
            raise InvalidArgument(f"{path} can't be read ({cause}); name a trace that cuelight wrote.") from error
        try:
            return cls._from_dict(content["cuelight"])
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidArgument(f"{path} holds no trace of this version of cuelight; record it again.") from error

    @classmethod
    def _from_dict(cls, own: dict[str, Any]) -> Self:
        if own["format"] != FORMAT:
            raise ValueError(own["format"])
        events = tuple(
            Event(int(time_ns), CommitKind(kind), int(lane), int(request_id), int(stage), int(detail))
            for time_ns, kind, lane, request_id, stage, detail in own["events"]
        )
        labels = {int(request_id): str(label) for request_id, label in own["labels"].items()}
        return cls(events, int(own["stage_count"]), labels)
