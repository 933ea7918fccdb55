"""What runs have reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from cuelight.regmap import CommitKind

from ..lockstep import Lockstep, Write
from ..steps import Event
from .admissions import Admissions
from .arrivals import Arrivals
from .chunks import Chunks
from .completions import Completions
from .dispatches import Dispatches
from .family import Family
from .fifos import Fifos
from .forming import FormedPasses
from .interference import Interference
from .lives import Lives
from .loop_points import LoopPoints
from .moves import Moves
from .pipelines import Pipelines
from .rejects import Rejects
from .resets import Resets
from .seating import Seating
from .second_passes import SecondPasses
from .settings import Settings
from .turns import Turns

__all__ = ["FAMILIES", "Coverage"]


class Kinds(Family):
    """Every kind of commit."""

    title = "kinds of commits"
    bins = tuple(kind.name for kind in CommitKind)

    def after(self, event: Event) -> Iterable[str]:
        yield event.kind.name


FAMILIES: Sequence[type[Family]] = (
    Kinds,
    Arrivals,
    Admissions,
    Rejects,
    Lives,
    Moves,
    Interference,
    Turns,
    Seating,
    Chunks,
    FormedPasses,
    LoopPoints,
    SecondPasses,
    Pipelines,
    Dispatches,
    Completions,
    Settings,
    Fifos,
    Resets,
)


class Coverage:
    """Counts how often runs came to each bin; its name there has the family's title in front."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.commits = 0
        """Commits followed."""
        self._families: Sequence[Family] = ()

    def watch(self, lockstep: Lockstep) -> None:
        """Count what a run comes to, from its reset on."""
        self._families = [family(lockstep.golden) for family in FAMILIES]
        lockstep.spectator = self

    def wrote(self, write: Write) -> None:
        """Takes in a write that the device has accepted, before the golden model does."""
        for family in self._families:
            self._take(family, family.wrote(write))

    def before(self, event: Event) -> None:
        """Takes in a commit, before the golden model does."""
        self.commits += 1
        for family in self._families:
            self._take(family, family.before(event))

    def after(self, event: Event) -> None:
        """Takes in a commit, once the golden model has followed it."""
        for family in self._families:
            self._take(family, family.after(event))

    def reset(self) -> None:
        """Takes in that the device is reset, in whatever state."""
        for family in self._families:
            self._take(family, family.reset())

    @property
    def missing(self) -> list[str]:
        """Bins that can be reached and were not."""
        return [name for family in FAMILIES for name in family.reachable() if not self.counts[name]]

    def table(self) -> str:
        """Every bin that a run comes to, and how often this one did."""
        names = [name for family in FAMILIES for name in family.reachable()]
        width = max(map(len, names))
        return "\n".join(f"{name:<{width}}  {self.counts[name]:>9,}" for name in names)

    def _take(self, family: Family, names: Iterable[str]) -> None:
        for name in names:
            if name not in family.bins:
                raise ValueError(f"{name!r} is no bin of {family.title!r}; correct the family that told of it.")
            if name in family.unreachable:
                proof = family.unreachable[name]
                raise ValueError(f"{family.title}: {name!r} was reached; see why the proof {proof} says it can't be.")
            self.counts[family.full(name)] += 1
