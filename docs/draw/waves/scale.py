"""Where cycles are in a picture, and how wide texts are. All lengths are points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

__all__ = ["CUT", "LEFT", "RIGHT", "WIDTH", "Scale", "text_width"]

# As wide as a page of GitHub, 900 pixels.
WIDTH, LEFT, RIGHT = 675.0, 122.0, 8.0
CUT = 15.0
"""Width of what stands for cycles that are cut out."""
_WIDEST = 32.0
"""Width of a cycle at most."""


class Scale:
    """Lays cycles out from left to right.

    Parameters
    ----------
    columns
        Cycles in their order, None for a cut.
    """

    def __init__(self, columns: Sequence[int | None]) -> None:
        cuts = columns.count(None)
        self.cycle = min(_WIDEST, (WIDTH - LEFT - RIGHT - cuts * CUT) / (len(columns) - cuts))
        """Width of a cycle."""
        self.lefts: dict[int, float] = {}
        """Left edge of each cycle that is drawn."""
        self.cuts: list[float] = []
        """Middle of each cut."""
        x = LEFT
        for column in columns:
            if column is None:
                self.cuts.append(x + CUT / 2)
                x += CUT
            else:
                self.lefts[column] = x
                x += self.cycle
        self.end = x

    def left(self, cycle: int) -> float:
        """Left edge of a cycle that is drawn; of the whole, or its right edge, for one before or after all."""
        return LEFT if cycle < 0 else self.lefts.get(cycle, self.end)

    def between_cuts(self, left: float, right: float) -> Iterable[tuple[float, float]]:
        """The parts of a stretch."""
        edges = [left, *(cut for cut in self.cuts if left < cut < right), right]
        return pairwise(edges)


def text_width(text: str, size: float) -> float:
    """Width of a line of text of this font size."""
    width, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)
    return float(width)
