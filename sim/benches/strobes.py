"""What benches wait for, and what they look at."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Signal, Value

from cuelight_rtl.commit import FIELDS

__all__ = ["Strobes"]


class Strobes:
    """A strobe rises in the low half of each clock cycle for which its condition holds.

    A bench that waits for one sleeps through all other cycles, which makes it several times as fast as one that looks
    at a signal in each cycle.

    Parameters
    ----------
    commits
        Number of commit ports.
    """

    def __init__(self, commits: int) -> None:
        self.accepted = Signal()
        """Strobe: a request is accepted."""
        self.ready = Signal()
        """Strobe: a request would be accepted."""
        self.answered = Signal()
        """Strobe: a read's data is there."""
        self.resting = Signal()
        """Strobe: nothing will change without a request."""
        self.committed = Signal()
        """Strobe: a commit port is valid."""
        self.commit_valid = Signal(commits)
        self.commits = [Signal(sum(FIELDS.values()), name=f"commit_{port}") for port in range(commits)]

    @property
    def ports(self) -> list[Signal]:
        plain = [signal for signal in vars(self).values() if isinstance(signal, Signal)]
        return [*plain, *self.commits]

    def connect(
        self,
        m: Module,
        clk: Value,
        *,
        valid: Value,
        ready: Value,
        answered: Value,
        idle: Value,
        commits: Sequence[tuple[Value, Value]],
    ) -> None:
        """Watches a scheduler's bus, and its commit ports: whether each is valid, and its fields in their order."""
        m.d.comb += [
            self.accepted.eq(~clk & valid & ready),
            self.ready.eq(~clk & ready),
            self.answered.eq(~clk & answered),
            self.resting.eq(~clk & idle),
            self.committed.eq(~clk & self.commit_valid.any()),
            self.commit_valid.eq(Cat(valid for valid, _ in commits)),
            *(packed.eq(fields) for packed, (_, fields) in zip(self.commits, commits, strict=True)),
        ]
