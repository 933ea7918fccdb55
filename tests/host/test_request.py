from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cuelight.errors import DeviceClosed, LaneError, RequestCancelled, Timeout
from cuelight.lanes.types import SlotRecord
from cuelight.request import Finish, Request

WAIT_S = 30.0


def make_request() -> Request:
    prompt = np.arange(5, dtype=np.int32)
    record = SlotRecord(request_id=0, prompt=prompt, limit=3, block_table=np.empty(0, np.int32))
    request = Request(0, 0, record, kv_blocks=1, cancel=lambda request: True, tell=lambda request: None)
    request.id = 0x0001_0007
    return request


def test_every_reader_sees_every_token_and_the_end() -> None:
    request = make_request()
    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(lambda: [token.token for token in request.tokens(WAIT_S)]) for _ in range(3)]
        for index, finish in enumerate((None, None, Finish.LENGTH)):
            request.deliver(5 + index, 100 + index, -0.5, finish, 0)
            request.announce()
        request.retire(cancelled=False)
        assert [reader.result(WAIT_S) for reader in readers] == [[100, 101, 102]] * 3
    assert [token.position for token in request.result(WAIT_S)] == [5, 6, 7]
    assert request.done
    assert request.finish is Finish.LENGTH


def test_a_repeated_token_is_dropped_and_a_missing_one_is_the_lanes_error() -> None:
    request = make_request()
    request.deliver(5, 1, 0.0, None, 0)
    request.deliver(5, 2, 0.0, None, 0)
    for position in (4, 7):
        with pytest.raises(LaneError, match=f"position {position}"):
            request.deliver(position, 3, 0.0, None, 0)
    request.deliver(6, 3, 0.0, Finish.END_OF_TEXT, 0)
    request.retire(cancelled=False)
    assert [token.token for token in request] == [1, 3]
    assert request.finish is Finish.END_OF_TEXT


def test_alternatives_belong_to_the_token_that_follows_them() -> None:
    request = make_request()
    # A lane that starts again repeats some, and is behind at first.
    for position, token, logprob in ((5, 9, -0.1), (5, 8, -2.0), (5, 9, -0.1), (6, 3, -1.0)):
        request.propose(position, token, logprob)
    request.deliver(5, 9, -0.1, None, 0)
    request.propose(5, 9, -0.1)
    request.deliver(5, 9, -0.1, None, 0)
    request.deliver(6, 4, -0.5, None, 0)
    request.propose(7, 2, -0.3)
    request.deliver(7, 2, -0.3, Finish.LENGTH, 0)
    assert [token.alternatives for token in request.received] == [((9, -0.1), (8, -2.0)), (), ((2, -0.3),)]


def test_a_wait_ends_in_time_and_leaves_the_request_alive() -> None:
    request = make_request()
    for wait in (lambda: next(request.tokens(0.01)), lambda: request.result(0.01), lambda: request.wait(0.01)):
        with pytest.raises(Timeout, match="0x00010007"):
            wait()
    request.deliver(5, 1, 0.0, None, 0)
    assert next(request.tokens(0.01)).token == 1


def test_a_cancelled_request_ends_its_readers_and_has_no_result() -> None:
    request = make_request()
    request.deliver(5, 1, 0.0, None, 0)
    request.retire(cancelled=True)
    assert [token.token for token in request] == [1]
    with pytest.raises(RequestCancelled, match="after 1 tokens"):
        request.result(WAIT_S)
    assert not request.cancel()


def test_a_failed_request_gives_its_tokens_then_the_cause() -> None:
    request = make_request()
    request.deliver(5, 1, 0.0, None, 0)
    request.blame(LaneError("the lane died"))
    request.blame(DeviceClosed("closed"))
    request.fail(LaneError("the group was reset"))
    tokens = request.tokens(WAIT_S)
    assert next(tokens).token == 1
    with pytest.raises(LaneError, match="the lane died"):
        next(tokens)
    with pytest.raises(LaneError, match="the lane died"):
        request.result(WAIT_S)


def test_one_that_finished_just_before_the_device_was_closed_has_finished() -> None:
    request = make_request()
    request.deliver(5, 1, 0.0, Finish.END_OF_TEXT, 0)
    request.blame(DeviceClosed("closed"))
    request.retire(cancelled=False)
    assert request.finish is Finish.END_OF_TEXT
    assert request.error is None


def test_a_listener_hears_at_once_and_of_tokens_that_are_announced_and_of_the_end() -> None:
    request = make_request()
    heard: list[tuple[int, bool]] = []
    request.deliver(5, 1, 0.0, None, 0)
    request.listen(lambda: heard.append((len(request.since(0)), request.done)))
    request.deliver(6, 2, 0.0, None, 0)
    request.deliver(7, 3, 0.0, Finish.LENGTH, 0)
    assert heard == [(1, False)]
    request.announce()
    request.retire(cancelled=False)
    request.retire(cancelled=False)
    assert heard == [(1, False), (3, False), (3, True)]
    assert [token.token for token in request.since(1)] == [2, 3]


def test_a_patient_listener_hears_of_the_last_token_only_and_of_the_end() -> None:
    request = make_request()
    heard: list[tuple[int, bool]] = []
    request.listen(lambda: heard.append((len(request.since(0)), request.done)), patient=True)
    for position, finish in ((5, None), (6, None), (7, Finish.LENGTH)):
        request.deliver(position, 1, 0.0, finish, 0)
        request.announce()
    request.retire(cancelled=False)
    assert heard == [(0, False), (3, False), (3, True)]


@pytest.mark.parametrize("patient", [False, True])
def test_a_listener_hears_of_a_failure_once(patient: bool) -> None:
    request = make_request()
    heard: list[str] = []
    request.listen(lambda: heard.append(str(request.error)), patient=patient)
    request.fail(LaneError("The lane has died."))
    request.fail(LaneError("The device is gone."))
    assert heard == ["None", "The lane has died."]
