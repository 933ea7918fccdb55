"""How the bytes of commands and attributes arrive (docs/device.md §3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cuelight import regmap

from ..golden import Golden
from ..lockstep import Write
from .family import Family

__all__ = ["Arrivals"]

_CUTS = ("whole", "low half first", "high half first", "in pairs of bytes", "byte by byte", "in other pieces")
_PAIRS = frozenset(0b11 << 2 * pair for pair in range(4))
_BYTES = frozenset(1 << byte for byte in range(8))


class Arrivals(Family):
    """Bytes on their way to a command."""

    title = "arrival of bytes"
    bins = (
        *(f"{what} {cut}" for what in ("command", "attributes") for cut in _CUTS),
        "a byte of a command again",
        "half command discarded by attributes",
        "whole attributes replaced",
        "half commands on two pages",
    )

    def __init__(self, golden: Golden) -> None:
        super().__init__(golden)
        self._strobes: dict[int, list[int]] = {}
        """Of the writes since a latch was empty, by offset."""

    def wrote(self, write: Write) -> Iterable[str]:
        if write.offset >= regmap.IDENTITY or not write.strobe:
            return
        number, register = divmod(write.offset, regmap.PAGE_STRIDE)
        page = self.golden.pages[number]
        strobes = self._strobes.setdefault(write.offset, [])
        if register == regmap.Page.SCHED_CMD:
            if page.command.got & write.strobe:
                yield "a byte of a command again"
            got, what = page.command.got, "command"
            if any(other.command.got for other in self.golden.pages if other is not page):
                yield "half commands on two pages"
        elif register == regmap.Page.SCHED_ATTR:
            if page.command.got:
                yield "half command discarded by attributes"
            self._strobes.pop(write.offset - register + regmap.Page.SCHED_CMD, None)
            if page.attributes.whole:
                yield "whole attributes replaced"
            got, what = 0 if page.attributes.whole else page.attributes.got, "attributes"
        else:
            return
        if not got:
            strobes.clear()
        strobes.append(write.strobe)
        if got | write.strobe == 0xFF:
            yield f"{what} {_cut(strobes)}"
            strobes.clear()


def _cut(strobes: Sequence[int]) -> str:
    if len(strobes) == 1:
        return "whole"
    if len(strobes) == 2 and set(strobes) == {0x0F, 0xF0}:
        return "low half first" if strobes[0] == 0x0F else "high half first"
    for pieces, name in ((_PAIRS, "in pairs of bytes"), (_BYTES, "byte by byte")):
        if len(strobes) == len(pieces) and set(strobes) == pieces:
            return name
    return "in other pieces"
