import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuelight.blocks import BlockPool


def test_blocks_are_given_out_lowest_first_and_none_if_too_few_are_free() -> None:
    pool = BlockPool(4)
    assert pool.take(3) == (0, 1, 2)
    assert pool.take(2) is None
    assert pool.free == 1
    assert pool.take(1) == (3,)


def test_what_is_not_held_cannot_be_given_back() -> None:
    pool = BlockPool(4)
    table = pool.take(2)
    assert table is not None
    for wrong in ((3,), (0, 0), (0, 4), (-1,), (0, 3)):
        with pytest.raises(ValueError, match="must be held"):
            pool.give(wrong)
        assert pool.free == 2
    pool.give(table)
    with pytest.raises(ValueError, match="must be held"):
        pool.give(table)
    assert pool.free == 4


@given(st.integers(0, 40), st.lists(st.integers(-5, 12), max_size=60))
def test_no_block_is_held_twice_and_none_is_lost(count: int, steps: list[int]) -> None:
    pool = BlockPool(count)
    held: list[tuple[int, ...]] = []
    for step in steps:
        if step >= 0:
            table = pool.take(step)
            assert (table is None) == (step > count - sum(map(len, held)))
            if table is not None:
                held.append(table)
        elif held:
            pool.give(held.pop(step % len(held)))
        taken = [block for table in held for block in table]
        assert len(set(taken)) == len(taken)
        assert pool.free == count - len(taken)
    for table in held:
        pool.give(table)
    assert sorted(pool.take(count) or ()) == list(range(count))
