"""KV blocks of a lane group: who holds them, and which ones hold the beginning of other prompts too."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["NO_TOKENS", "BlockPool", "Lease"]

NO_TOKENS: NDArray[np.int32] = np.empty(0, np.int32)

_DIGEST_BYTES = 16


@dataclass(eq=False, slots=True)
class Lease:
    """The KV blocks of one request.

    Parameters
    ----------
    table
        Blocks in order of position.
    hits
        How many of the first of them were found written; they may be shared.
    era
        Era of the pool in which they were taken.
    digests
        Chained digests of the first blocks, as far as they are known to be whole.
    """

    table: tuple[int, ...]
    hits: int
    era: int
    digests: list[bytes] = field(default_factory=list)


class BlockPool:
    """Numbers the KV blocks of one lane group, and is its prefix cache; not thread-safe.

    A block that its owner's lane has written to its end is published under a digest of all tokens up to there. Later
    requests whose prompts begin alike find and share it. Unheld published blocks stay until their room is needed, the
    longest unused first, of one prompt the last block first.

    Credit is counted as the device does: a shared block counts for each request that holds it. So whoever has credit
    finds blocks.

    Parameters
    ----------
    count : int
        Blocks of the group, numbered from 0.
    positions : int
        Positions of a block.

    Attributes
    ----------
    era : int
        Moves on when the lane loses what its blocks hold.
    """

    def __init__(self, count: int, positions: int = 1) -> None:
        self.count = count
        self.positions = positions
        self.era = 0
        self._credit = count
        self._free = list(range(count - 1, -1, -1))
        self._holders = [0] * count
        self._leases: set[Lease] = set()
        self._digests: list[bytes | None] = [None] * count
        self._published: dict[bytes, int] = {}
        self._unheld: OrderedDict[int, None] = OrderedDict()

    @property
    def free(self) -> int:
        """Credit that nobody has, in blocks."""
        return self._credit

    @property
    def cached(self) -> int:
        """Published blocks, held or not."""
        return len(self._published)

    def take(self, count: int, tokens: NDArray[np.int32] = NO_TOKENS, leave: int = 0) -> Lease | None:
        """Give out `count` blocks, or None, and nothing, if fewer than `count` and `leave` together are free.

        Parameters
        ----------
        count
            Blocks, those found written included.
        tokens
            Whole blocks of these, from the first on, need not be written again if they are found.
        leave
            Blocks of credit that stay free.
        """
        if count + leave > self._credit:
            return None
        self._credit -= count
        lease = Lease((), 0, self.era)
        found: list[int] = []
        for digest in _chain(tokens, self.positions, []):
            block = self._published.get(digest)
            if block is None or len(found) == count:
                break
            found.append(block)
            lease.digests.append(digest)
            self._hold(block)
        fresh = [self._take_fresh() for _ in range(count - len(found))]
        lease.table, lease.hits = (*found, *fresh), len(found)
        self._leases.add(lease)
        return lease

    def publish(self, lease: Lease, tokens: NDArray[np.int32]) -> None:
        """Let later requests find the whole blocks of `tokens`, which the lease's lane has written from position 0 on.

        What was written before the lane lost its blocks is not published.
        """
        if lease not in self._leases or lease.era != self.era:
            return
        for digest in _chain(tokens, self.positions, lease.digests):
            block = lease.table[len(lease.digests)]
            lease.digests.append(digest)
            # Someone else may have written the same; one is enough.
            if digest not in self._published:
                self._published[digest] = block
                self._digests[block] = digest

    def give(self, lease: Lease, keep: bool = True) -> None:
        """Take a lease back.

        Parameters
        ----------
        lease
            The lease.
        keep
            Whether its published blocks may be found from now on; False if what they hold is doubtful.

        Raises
        ------
        ValueError
            It was given back before, or is another pool's.
        """
        if lease not in self._leases:
            raise ValueError("a lease is given back once, to the pool it came from")
        self._leases.remove(lease)
        self._credit += len(lease.table)
        for block in reversed(lease.table):
            if not keep:
                self._withdraw(block)
            self._holders[block] -= 1
            if self._holders[block]:
                continue
            if self._digests[block] is None:
                self._free.append(block)
            else:
                self._unheld[block] = None

    def forget(self) -> None:
        """Find nothing that was written up to now: the lane has lost it. Leases stay."""
        self.era += 1
        self._published.clear()
        self._digests = [None] * self.count
        self._free.extend(reversed(self._unheld))
        self._unheld.clear()

    def _hold(self, block: int) -> None:
        self._holders[block] += 1
        self._unheld.pop(block, None)

    def _take_fresh(self) -> int:
        block = self._free.pop() if self._free else next(iter(self._unheld))
        self._withdraw(block)
        self._hold(block)
        return block

    def _withdraw(self, block: int) -> None:
        digest, self._digests[block] = self._digests[block], None
        if digest is not None:
            del self._published[digest]


def _chain(tokens: NDArray[np.int32], positions: int, known: list[bytes]) -> Iterator[bytes]:
    """Digest of each whole block of `tokens` after those `known`, each over the one before and the block's tokens."""
    data = np.ascontiguousarray(tokens, np.dtype("<i4")).tobytes()
    digest = known[-1] if known else b""
    size = 4 * positions
    for start in range(len(known) * size, len(data) - size + 1, size):
        digest = hashlib.blake2b(digest + data[start : start + size], digest_size=_DIGEST_BYTES).digest()
        yield digest
