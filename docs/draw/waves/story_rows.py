"""Rows of a story: its writes, its commits, and what lane and FIFO show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from cuelight.regmap import CommitKind, DispatchHead
from cuelight_rtl.model import Commit

from .rows import EVER, Mark, Row, Span
from .stories import Story
from .words import register_of, tell_bytes, tell_commit, tell_dispatch, tell_retired, tell_write

__all__ = ["SIGNALS", "StoryRows"]

_HEAD, _RETIRED, _GOT = "lanes.lane_0.head", "retired", "pages.cmd_got_0"
SIGNALS = (_HEAD, _RETIRED, _GOT)
"""Signals that are shown."""
_WRITE, _CORE, _LANE = "#52606d", "#e8912d", "#1f6f8b"
_PASSES = ("#bfe3df", "#f9d7a6")
_VALUE = "#e4e7eb"
_HIDDEN = (CommitKind.OFFER, CommitKind.UNOFFER)


class StoryRows:
    """Rows of one story. Requests are called A, B, … in the order of their admission."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._names = {request: chr(ord("A") + place) for place, request in enumerate(story.admitted)}

    def writes(self) -> list[Row]:
        """A row for each register that was written."""
        marks: dict[str, list[Mark]] = {}
        for write in self._story.writes:
            texts = tell_write(write, self._names)
            marks.setdefault(register_of(write), []).append(Mark(write.cycle, texts, _WRITE))
        return [Row("writes", name, those) for name, those in marks.items()]

    def commits(self, *hidden: CommitKind) -> list[Row]:
        """A row for each kind of commit that came, but for some."""
        marks: dict[str, list[Mark]] = {}
        for commit in self._story.commits:
            if commit.cycle >= 0 and commit.kind not in (*_HIDDEN, *hidden):
                mark = Mark(commit.cycle, tell_commit(commit, self._names), _LANE if commit.port else _CORE)
                marks.setdefault(CommitKind(commit.kind).name, []).append(mark)
        return [Row("commits", name, those) for name, those in marks.items()]

    def outstanding(self) -> Row:
        """The oldest outstanding dispatch of lane 0, as its commits tell."""
        spans = [
            Span(start, end, tell_dispatch(sent.id, sent.stage, k, sent.detail & 0x3FF), _PASSES[k])
            for sent, start, end in self._oldest()
            if end > 0
            for k in [sent.detail >> 10 & 7]
        ]
        return Row("lane 0", "outstanding", spans=spans)

    def _oldest(self) -> Iterator[tuple[Commit, int, int]]:
        """Each dispatch, the cycle from which on it was the oldest, and the one from which on it was complete."""
        sent = [commit for commit in self._story.commits if commit.kind == CommitKind.DISPATCH]
        ends = [commit.cycle + 1 for commit in self._story.commits if commit.kind == CommitKind.COMPLETE]
        start = -EVER
        for number, dispatch in enumerate(sent[: len(ends) + 1]):
            end = ends[number] if number < len(ends) else EVER
            yield dispatch, max(start, dispatch.cycle + 1), end
            start = end

    def head(self) -> Row:
        """The poll head of lane 0."""

        def tell(value: int) -> tuple[Sequence[str], str]:
            head = DispatchHead.unpack(value)
            k = head.buffer >> 1
            return tell_dispatch(head.sequence, head.stage, k, head.rows) if head.sequence else (), _PASSES[k]

        return self._row("lane 0", "poll head", _HEAD, tell)

    def retired(self) -> Row:
        """The head of the retirement FIFO."""
        return self._row("FIFO", "RETIRE_HEAD", _RETIRED, lambda value: (tell_retired(value, self._names), _VALUE))

    def got(self) -> Row:
        """Which bytes of a half command page 0 has."""
        return self._row("page 0", "bytes it has", _GOT, lambda value: (tell_bytes(value), _VALUE))

    def _row(self, group: str, name: str, signal: str, tell: Callable[[int], tuple[Sequence[str], str]]) -> Row:
        values = self._story.signals[signal]
        spans, start = list[Span](), 0
        for value, run in groupby(values):
            end = start + len(list(run))
            texts, colour = tell(value)
            if texts:
                spans.append(Span(start or -EVER, end if end < len(values) else EVER, texts, colour))
            start = end
        return Row(group, name, spans=spans)
