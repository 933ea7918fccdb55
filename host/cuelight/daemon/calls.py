"""Tool calls in an answer's text, told apart from the rest as the text comes."""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Call", "CallFormat", "CallParser", "CallPart", "Said", "whole_calls"]

_DECODER = json.JSONDecoder()
_BLANK = " \t\r\n"
_BETWEEN = _BLANK + ",;[]"
_ID_BYTES = 12


@dataclass(frozen=True, slots=True)
class CallFormat:
    """How a model writes calls: JSON objects, one or several, perhaps in a list.

    Parameters
    ----------
    opening, closing
        What stands around them; if nothing does, they are the whole answer.
    arguments
        The member that has a call's arguments; its function is in `name`.
    """

    opening: str
    closing: str
    arguments: str


class CallPart(NamedTuple):
    """What is new of a call.

    Parameters
    ----------
    call
        Which one of the answer's.
    id, name
        In a call's first part only.
    arguments
        More of its JSON.
    """

    call: int
    id: str | None
    name: str | None
    arguments: str


class Call(NamedTuple):
    """A whole call."""

    id: str
    name: str
    arguments: str


class Said(NamedTuple):
    """What is new of an answer."""

    text: str
    calls: tuple[CallPart, ...]


def whole_calls(parts: Iterable[CallPart]) -> list[Call]:
    """Put the calls of an answer together."""
    calls: list[Call] = []
    for part in parts:
        if part.name is not None:
            calls.append(Call(part.id or "", part.name, part.arguments))
        else:
            calls[-1] = calls[-1]._replace(arguments=calls[-1].arguments + part.arguments)
    return calls


class CallParser:
    """Takes an answer's text in any pieces; what comes out, put together, does not depend on how it was cut.

    A call is passed on from its arguments' first character on. What only looks like one, since it is no JSON or names
    no function on offer, stays text. So does white space, but not beside calls.

    Parameters
    ----------
    form
        How the model writes calls.
    names
        Functions on offer.

    Attributes
    ----------
    calls : int
        Calls that have begun.
    """

    def __init__(self, form: CallFormat, names: Collection[str]) -> None:
        self.calls = 0
        self._form = form
        self._names = frozenset(names)
        self._rest = ""
        # White space that is text unless a call follows.
        self._blank = ""
        self._follows_call = False
        # A block's text up to here, in case that it turns out to be none.
        self._block = ""
        self._first_call = 0
        self._scanner = _Scanner()
        self._text: list[str] = []
        self._parts: list[CallPart] = []
        self._state = self._outside if form.opening else self._at_start

    def add(self, text: str) -> Said:
        """Take more text."""
        self._rest += text
        while self._state():
            pass
        return self._take()

    def end(self) -> Said:
        """Settle what is held back; no text follows."""
        while self._state in (self._between, self._head) and self.calls == self._first_call:
            self._give_up()
            while self._state():
                pass
        if self._state in (self._outside, self._at_start, self._after):
            self._say(self._rest)
            if not self._follows_call:
                self._text.append(self._blank)
        self._rest = self._blank = ""
        return self._take()

    def whole(self, text: str) -> tuple[str, list[Call]]:
        """Text and calls of a whole answer."""
        first, last = self.add(text), self.end()
        return first.text + last.text, whole_calls((*first.calls, *last.calls))

    def _take(self) -> Said:
        said = Said("".join(self._text), tuple(self._parts))
        self._text, self._parts = [], []
        return said

    # Each of these is a state. It takes what it can from the rest, and says whether there may be more to do.

    def _at_start(self) -> bool:
        """The whole answer is calls, or none of it."""
        start = self._rest.lstrip(_BLANK)
        if not start:
            return False
        if start[0] in "{[":
            self._enter(len(self._rest) - len(start))
        else:
            self._state = self._after
        return True

    def _outside(self) -> bool:
        """Text, up to an opening."""
        at = self._rest.find(self._form.opening)
        if at >= 0:
            self._say(self._rest[:at])
            self._rest = self._rest[at:]
            self._enter(len(self._form.opening))
            return True
        keep = _beginning(self._rest, self._form.opening)
        self._say(self._rest[: len(self._rest) - keep])
        self._rest = self._rest[len(self._rest) - keep :]
        return False

    def _between(self) -> bool:
        """In a block, in front of a call or of its end."""
        start = self._rest.lstrip(_BETWEEN)
        closing = self._form.closing
        if not start or (closing and closing != start and closing.startswith(start)):
            return False
        self._skip(len(self._rest) - len(start))
        if start[0] == "{":
            self._state = self._head
        elif closing and start.startswith(closing):
            if self.calls == self._first_call:
                self._give_up()
            else:
                self._rest = start[len(closing) :]
                self._state = self._outside
        elif self.calls == self._first_call:
            self._give_up()
        else:
            self._state = self._dropped if closing else self._after
        return True

    def _head(self) -> bool:
        """In a call, up to its arguments."""
        try:
            found = self._read_head()
        except _NoCall:
            found = None
        except _Incomplete:
            if not self._is_closed():
                return False
            found = None
        if found is None:
            if self.calls == self._first_call:
                self._give_up()
            else:
                self._state = self._dropped if self._form.closing else self._after
            return True
        name, end, whole = found
        self._parts.append(CallPart(self.calls, f"call_{secrets.token_hex(_ID_BYTES)}", name, whole or ""))
        self.calls += 1
        self._blank = ""
        self._follows_call = True
        self._rest = self._rest[end:]
        if whole is None:
            self._scanner = _Scanner()
            self._state = self._in_arguments
        else:
            self._state = self._between
        return True

    def _in_arguments(self) -> bool:
        """In a call's arguments."""
        end = self._scanner.scan(self._rest)
        part = self._rest[: len(self._rest) if end is None else end]
        if part:
            self._parts.append(CallPart(self.calls - 1, None, None, part))
        self._rest = self._rest[len(part) :]
        if end is None:
            return False
        self._scanner = _Scanner(depth=1)
        self._state = self._behind_arguments
        return True

    def _behind_arguments(self) -> bool:
        """In a call, up to its end."""
        end = self._scanner.scan(self._rest)
        self._rest = "" if end is None else self._rest[end:]
        self._state = self._behind_arguments if end is None else self._between
        return end is not None

    def _dropped(self) -> bool:
        """In a block, after its calls, among what is none."""
        at = self._rest.find(self._form.closing)
        if at < 0:
            self._rest = self._rest[len(self._rest) - _beginning(self._rest, self._form.closing) :]
            return False
        self._rest = self._rest[at + len(self._form.closing) :]
        self._state = self._outside
        return True

    def _after(self) -> bool:
        """Nothing but text follows."""
        self._say(self._rest)
        self._rest = ""
        return False

    def _enter(self, size: int) -> None:
        self._block, self._first_call = "", self.calls
        self._skip(size)
        self._state = self._between

    def _skip(self, size: int) -> None:
        self._block += self._rest[:size]
        self._rest = self._rest[size:]

    def _give_up(self) -> None:
        """It was no block of calls: what was taken for its beginning is text."""
        self._say(self._block)
        self._state = self._outside if self._form.opening else self._after

    def _say(self, text: str) -> None:
        whole = self._blank + text
        kept = whole.rstrip(_BLANK)
        self._blank = whole[len(kept) :]
        if kept:
            self._text.append(kept.lstrip(_BLANK) if self._follows_call else kept)
            self._follows_call = False

    def _is_closed(self) -> bool:
        """Whether the block ends in the rest, outside all strings."""
        closing = self._form.closing
        scanner, start = _Scanner(), 0
        while closing and (at := self._rest.find(closing, start)) >= 0:
            scanner.scan(self._rest[start:at])
            if not scanner.in_string:
                return True
            scanner.scan(closing)
            start = at + len(closing)
        return False

    def _read_head(self) -> tuple[str, int, str | None]:
        """Name of the call at the beginning of the rest, where its arguments begin, or where it ends and all of them.

        Raises
        ------
        _Incomplete
            More text is needed.
        _NoCall
            It is none.
        """
        members: dict[str, object] = {}
        at = 1
        while True:
            at = self._next(at)
            if self._rest[at] == "}":
                break
            if self._rest[at] != '"':
                raise _NoCall
            key, at = self._value(at)
            at = self._next(at)
            if self._rest[at] != ":" or key not in ("name", "type", "id", self._form.arguments):
                raise _NoCall
            at = self._next(at + 1)
            name = members.get("name")
            if key == self._form.arguments and self._rest[at] == "{" and isinstance(name, str):
                return name, at, None
            value, at = self._value(at)
            if key == "name" and not (isinstance(value, str) and value in self._names):
                raise _NoCall
            members[str(key)] = value
            at = self._next(at)
            if self._rest[at] not in ",}":
                raise _NoCall
            at += self._rest[at] == ","
        name, arguments = members.get("name"), members.get(self._form.arguments, {})
        if not isinstance(name, str):
            raise _NoCall
        # Some write the arguments' JSON as a string.
        written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        return name, at + 1, written

    def _next(self, at: int) -> int:
        while at < len(self._rest) and self._rest[at] in _BLANK:
            at += 1
        if at == len(self._rest):
            raise _Incomplete
        return at

    def _value(self, at: int) -> tuple[object, int]:
        try:
            value, end = _DECODER.raw_decode(self._rest, at)
        except (ValueError, RecursionError):
            raise _Incomplete from None
        if end == len(self._rest):
            # A number may go on.
            raise _Incomplete
        return value, end


class _Incomplete(Exception):
    """More text is needed to tell."""


class _NoCall(Exception):
    """What looked like a call is none."""


class _Scanner:
    """Finds the end of a JSON object without understanding it."""

    def __init__(self, depth: int = 0) -> None:
        self.in_string = False
        self._depth = depth
        self._escaped = False

    def scan(self, text: str) -> int | None:
        """Where the object ends in `text`, which goes on from what was scanned before; None if it does not."""
        for at, letter in enumerate(text):
            if self.in_string:
                if self._escaped:
                    self._escaped = False
                elif letter == "\\":
                    self._escaped = True
                elif letter == '"':
                    self.in_string = False
            elif letter == '"':
                self.in_string = True
            elif letter in "{[":
                self._depth += 1
            elif letter in "}]":
                self._depth -= 1
                if self._depth == 0:
                    return at + 1
        return None


def _beginning(text: str, mark: str) -> int:
    """Characters at the end of `text` that `mark` may begin with."""
    return next((size for size in range(min(len(mark) - 1, len(text)), 0, -1) if mark.startswith(text[-size:])), 0)
