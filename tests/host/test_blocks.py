import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cuelight.blocks import BlockPool, Lease

POSITIONS = 4


def tokens(text: str) -> NDArray[np.int32]:
    return np.array([ord(letter) for letter in text], np.int32)


def take(pool: BlockPool, count: int, text: str = "") -> Lease:
    lease = pool.take(count, tokens(text))
    assert lease is not None
    return lease


def test_blocks_are_given_out_lowest_first_and_none_if_too_few_are_free() -> None:
    pool = BlockPool(4)
    assert take(pool, 3).table == (0, 1, 2)
    assert pool.take(2) is None
    assert pool.free == 1
    assert take(pool, 1).table == (3,)


def test_what_is_not_held_cannot_be_given_back() -> None:
    pool, other = BlockPool(4), BlockPool(4)
    lease = take(pool, 2)
    with pytest.raises(ValueError, match="given back once"):
        other.give(lease)
    pool.give(lease)
    with pytest.raises(ValueError, match="given back once"):
        pool.give(lease)
    assert pool.free == other.free == 4


def test_whole_blocks_are_shared_from_the_moment_they_are_published() -> None:
    pool = BlockPool(9, POSITIONS)
    owner = take(pool, 4, "abcdefghij")
    assert take(pool, 1, "abcdefghij").hits == 0
    pool.publish(owner, tokens("abcdefghij"))
    guest = take(pool, 3, "abcdefgxij")
    assert (guest.hits, guest.table[0]) == (1, owner.table[0])
    assert not set(guest.table[1:]) & set(owner.table)
    # Credit counts shared blocks too.
    assert pool.free == 9 - 4 - 1 - 3
    pool.give(guest)
    pool.publish(owner, tokens("abcdefghijkl"))
    heir = take(pool, 4, "abcdefghijklmnop")
    assert (heir.hits, heir.table[:3]) == (3, owner.table[:3])


def test_the_same_tokens_behind_another_beginning_are_no_hit() -> None:
    pool = BlockPool(8, POSITIONS)
    pool.publish(take(pool, 2), tokens("abcdefgh"))
    assert take(pool, 2, "xbcdefgh").hits == 0
    assert take(pool, 2, "efgh").hits == 0


def test_what_nobody_holds_is_evicted_the_longest_unused_and_last_block_first() -> None:
    pool = BlockPool(4, POSITIONS)
    first, second = take(pool, 2), take(pool, 2)
    pool.publish(first, tokens("aaaabbbb"))
    pool.publish(second, tokens("xxxxyyyy"))
    pool.give(second)
    pool.give(first)
    assert pool.free == 4
    pool.give(take(pool, 1, "xxxx"))
    for text, hits in (("xxxxyyyy", 1), ("aaaabbbb", 2)):
        # The block of y has been unused the longest.
        pool.give(take(pool, 1))
        found = take(pool, 2, text)
        assert found.hits == hits
        pool.give(found)
    assert pool.cached == 3
    pool.give(take(pool, 3))
    # Now x was the longest unused, and b goes before a.
    assert pool.cached == 1
    assert take(pool, 2, "aaaabbbb").hits == 1


def test_a_block_that_is_held_is_never_evicted() -> None:
    pool = BlockPool(3, POSITIONS)
    owner = take(pool, 1)
    pool.publish(owner, tokens("abcd"))
    others = take(pool, 2)
    pool.give(others)
    assert owner.table[0] not in take(pool, 2, "wxyz").table
    pool.give(owner)


def test_what_a_failed_request_held_is_not_found_again() -> None:
    pool = BlockPool(6, POSITIONS)
    owner = take(pool, 2)
    pool.publish(owner, tokens("abcdefgh"))
    guest = take(pool, 2, "abcdefgh")
    pool.give(guest, keep=False)
    assert take(pool, 1, "abcd").hits == 0
    pool.give(owner)
    assert pool.cached == 0


def test_a_lane_that_lost_its_blocks_takes_what_was_published_with_it() -> None:
    pool = BlockPool(6, POSITIONS)
    living = take(pool, 2)
    pool.publish(living, tokens("abcd"))
    gone = take(pool, 1)
    pool.publish(gone, tokens("wxyz"))
    pool.give(gone)
    pool.forget()
    # Its lane wrote these before it lost everything, too.
    pool.publish(living, tokens("abcdefgh"))
    assert (pool.cached, take(pool, 1, "abcd").hits, take(pool, 1, "wxyz").hits) == (0, 0, 0)
    pool.give(living)
    renewed = take(pool, 2)
    pool.publish(renewed, tokens("abcdefgh"))
    assert take(pool, 2, "abcdefgh").hits == 2


@given(st.integers(1, 12), st.integers(0, 2**32))
def test_no_block_changes_while_someone_may_read_it(count: int, seed: int) -> None:
    """Random leases over a cache that holds what was written: whoever hits finds its own tokens."""
    chance = random.Random(seed)
    pool = BlockPool(count, POSITIONS)
    cache = np.full((count, POSITIONS), -1, np.int32)
    held: list[tuple[Lease, NDArray[np.int32]]] = []
    for _ in range(60):
        if held and chance.random() < 0.45:
            lease, text = held.pop(chance.randrange(len(held)))
            assert (cache[list(lease.table)].reshape(-1)[: len(text)] == text).all()
            pool.give(lease, keep=chance.random() < 0.9)
        elif held and chance.random() < 0.05:
            # A lane starts anew, with garbage: nobody goes on.
            pool.forget()
            cache[:] = -2
            for lease, _ in held:
                pool.give(lease)
            held.clear()
        else:
            size = chance.randrange(1, 4)
            text = tokens("".join(chance.choices("ab", k=size * POSITIONS)))
            new = pool.take(size, text[:-1])
            assert (new is None) == (size > count - sum(len(lease.table) for lease, _ in held))
            if new is None:
                continue
            assert new.hits < size
            assert len(set(new.table)) == size
            start = new.hits * POSITIONS
            assert (cache[list(new.table)].reshape(-1)[:start] == text[:start]).all()
            cache[list(new.table[new.hits :])] = text[start:].reshape(-1, POSITIONS)
            held.append((new, text))
            pool.publish(new, text[: chance.randrange(len(text) + 1)])
        holders = [block for lease, _ in held for block in lease.table]
        assert pool.free == count - len(holders)
        assert pool.cached <= count
    for lease, _ in held:
        pool.give(lease)
    pool.forget()
    assert sorted(take(pool, count).table) == list(range(count))
