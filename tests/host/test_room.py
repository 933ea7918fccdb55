import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from cuelight.errors import DeviceBusy, DeviceClosed, DeviceFull, LaneError, NoKvCredit
from cuelight.room import Room

WAIT_S = 30.0


def make_room(slots: int = 4, blocks: int = 8) -> Room:
    room = Room(slots, groups=2)
    for group in range(2):
        room.resize(group, blocks)
    return room


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def waiting(room: Room, group: int, count: int) -> Callable[[], bool]:
    return lambda: len(room._lines[group]) == count


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as threads:
        yield threads


def test_a_full_device_and_missing_credit_are_told_apart() -> None:
    room = make_room(slots=2)
    first = room.take(0, 0, 6, timeout_s=0)
    with pytest.raises(NoKvCredit, match="2 of 8 KV blocks free"):
        room.take(0, 0, 3, timeout_s=0)
    room.take(1, 0, 8, timeout_s=0)
    with pytest.raises(DeviceFull, match="All 2 slots"):
        room.take(0, 0, 1, timeout_s=0)
    with pytest.raises(DeviceFull):
        room.take_slot(timeout_s=0)
    room.give(0, first)
    assert (room.free_slots, room.free_blocks(0), room.free_blocks(1)) == (1, 8, 0)


def test_waiters_are_served_by_tier_then_by_arrival(pool: ThreadPoolExecutor) -> None:
    room = make_room()
    held = room.take(0, 0, 8, timeout_s=0)
    order: list[str] = []

    def wait(name: str, tier: int) -> None:
        lease = room.take(0, tier, 8, WAIT_S)
        order.append(name)
        room.give(0, lease)

    waits: list[Future[None]] = []
    for name, tier in (("third", 2), ("second", 1), ("fourth", 2), ("first", 0)):
        waits.append(pool.submit(wait, name, tier))
        until(waiting(room, 0, len(waits)))
    room.give(0, held)
    for done in waits:
        done.result(WAIT_S)
    assert order == ["first", "second", "third", "fourth"]


def test_a_large_request_is_not_overtaken_by_small_ones_and_other_groups_are_not_held_up(
    pool: ThreadPoolExecutor,
) -> None:
    room = make_room()
    held = room.take(0, 0, 4, timeout_s=0)
    large = pool.submit(room.take, 0, 0, 8, WAIT_S)
    until(waiting(room, 0, 1))
    with pytest.raises(NoKvCredit, match="other requests wait"):
        room.take(0, 0, 1, timeout_s=0)
    room.take(1, 0, 8, timeout_s=0)
    room.give(0, held)
    assert len(large.result(WAIT_S).table) == 8


def test_one_that_gives_up_lets_the_next_through(pool: ThreadPoolExecutor) -> None:
    room = make_room()
    room.take(0, 0, 4, timeout_s=0)
    large = pool.submit(room.take, 0, 0, 8, 0.2)
    until(waiting(room, 0, 1))
    small = pool.submit(room.take, 0, 0, 2, WAIT_S)
    with pytest.raises(NoKvCredit):
        large.result(WAIT_S)
    assert len(small.result(WAIT_S).table) == 2


def test_closing_wakes_who_waits_with_the_cause(pool: ThreadPoolExecutor) -> None:
    room = make_room()
    for group in range(2):
        room.take(group, 0, 8, timeout_s=0)
    waits = [pool.submit(room.take, group, 0, 1, WAIT_S) for group in range(2)]
    until(lambda: waiting(room, 0, 1)() and waiting(room, 1, 1)())
    room.close_group(0, LaneError("lane 0 died"))
    with pytest.raises(LaneError, match="lane 0 died"):
        waits[0].result(WAIT_S)
    assert not waits[1].done()
    room.close(DeviceClosed("closed"))
    with pytest.raises(DeviceClosed):
        waits[1].result(WAIT_S)
    for group in range(2):
        with pytest.raises(DeviceClosed):
            room.take(group, 0, 1, timeout_s=0)
    with pytest.raises(DeviceClosed):
        room.take_slot(timeout_s=0)


def test_a_group_with_blocks_held_keeps_its_size() -> None:
    room = make_room()
    lease = room.take(0, 0, 1, timeout_s=0)
    with pytest.raises(DeviceBusy, match="Lane group 0"):
        room.resize(0, 4)
    room.give(0, lease)
    room.resize(0, 4)
    assert room.free_blocks(0) == room.blocks(0) == 4


def test_many_threads_never_hold_more_than_there_is(pool: ThreadPoolExecutor) -> None:
    room = make_room(slots=3, blocks=5)
    lock = threading.Lock()
    held: set[int] = set()

    def work(seed: int) -> None:
        for turn in range(50):
            lease = room.take(0, turn % 4, 1 + (seed + turn) % 3, WAIT_S)
            with lock:
                assert not held & set(lease.table)
                held.update(lease.table)
            with lock:
                held.difference_update(lease.table)
            room.give(0, lease)

    for done in [pool.submit(work, seed) for seed in range(6)]:
        done.result(WAIT_S)
    assert (room.free_slots, room.free_blocks(0)) == (3, 5)


def test_a_tier_leaves_its_floor_to_the_others(pool: ThreadPoolExecutor) -> None:
    room = make_room(blocks=8)
    room.set_floors([0, 0, 0, 3])
    for tier, blocks in ((3, 6), (0, 9)):
        with pytest.raises(NoKvCredit, match="has 8 in all"):
            # Not even waited for.
            room.take(0, tier, blocks, WAIT_S)
    held = room.take(0, 3, 4, timeout_s=0)
    with pytest.raises(NoKvCredit, match="leaves 3 to others than tier 3"):
        room.take(0, 3, 2, timeout_s=0)
    low = pool.submit(room.take, 0, 3, 2, WAIT_S)
    until(waiting(room, 0, 1))
    assert room.waiting(3) == 1
    # Higher tiers are not held up by it.
    high = room.take(0, 0, 4, timeout_s=0)
    assert not room.keeps_floor(0, 3)
    room.give(0, held)
    assert not low.done()
    room.give(0, high)
    assert len(low.result(WAIT_S).table) == 2


def test_floors_that_move_move_those_that_wait(pool: ThreadPoolExecutor) -> None:
    room = make_room(blocks=8)
    room.take(0, 0, 4, timeout_s=0)
    room.set_floors([0, 0, 0, 3])
    low = pool.submit(room.take, 0, 3, 2, WAIT_S)
    until(waiting(room, 0, 1))
    room.set_floors([0, 0, 0, 2])
    assert len(low.result(WAIT_S).table) == 2
    late = pool.submit(room.take, 0, 3, 4, WAIT_S)
    until(waiting(room, 0, 1))
    room.set_floors([0, 0, 0, 5])
    with pytest.raises(NoKvCredit, match="of which tier 3 leaves 5"):
        late.result(WAIT_S)


def test_who_had_room_before_comes_first_and_below_the_floor(pool: ThreadPoolExecutor) -> None:
    room = make_room(blocks=8)
    room.set_floors([0, 0, 0, 8])
    held = room.take(0, 0, 2, timeout_s=0)
    waits = [pool.submit(room.take, 0, 0, 8, WAIT_S)]
    until(waiting(room, 0, 1))
    assert len(room.take(0, 3, 6, timeout_s=0, again=True).table) == 6
    waits.append(pool.submit(lambda: room.take(0, 3, 2, WAIT_S, again=True)))
    until(waiting(room, 0, 2))
    room.give(0, held)
    assert len(waits[1].result(WAIT_S).table) == 2
    assert not waits[0].done()
    room.close(DeviceClosed("closed"))


def test_what_is_promised_is_given_to_nobody_else(pool: ThreadPoolExecutor) -> None:
    promised = [(0, 5), (1, 8)]
    room = Room(4, 2, lambda: promised)
    for group in range(2):
        room.resize(group, 8)
    with pytest.raises(NoKvCredit):
        room.take(0, 0, 4, timeout_s=0)
    room.take(0, 0, 3, timeout_s=0)
    room.take_slot(timeout_s=0)
    # Two slots are free, and both are promised.
    with pytest.raises(DeviceFull):
        room.take_slot(timeout_s=0)
    manual = pool.submit(room.take_slot, WAIT_S)
    assert len(room.take(0, 3, 5, timeout_s=0, again=True).table) == 5
    assert not manual.done()
    promised.clear()
    room.break_promise()
    manual.result(WAIT_S)
