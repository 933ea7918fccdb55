"""Front ends in processes of their own: they say what one process would, and what they had is given back."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest

from cuelight import LLM
from cuelight.daemon import front_ends as front_ends_module
from cuelight.daemon import front_link
from cuelight.daemon.core import DeviceCore
from cuelight.daemon.front_ends import FrontEnds, FrontEndsFail
from cuelight.daemon.serve import Daemon, listen
from cuelight.daemon.settings import Settings

from ..host.checks import assert_at_rest, until
from .asking import CHAT, chat, finishes, text_of
from .conftest import WAIT_S, Running
from .test_metrics import parse

FRONT_ENDS = 2
CONNECTIONS = 6
SERVER = {"port": 0, "drain_s": 5.0, "front_ends": FRONT_ENDS}
FOREVER: dict[str, Any] = {"max_tokens": 200, "logit_bias": {"2": -100}}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}


@pytest.fixture(scope="module")
def several(llm: LLM) -> Iterator[Running]:
    running = Running(llm, server=SERVER, limits={"connections": CONNECTIONS})
    until(lambda: len(pids(running)) == FRONT_ENDS)
    yield running
    running.stop()
    assert_at_rest(llm.device)


@pytest.fixture
def one(llm: LLM) -> Iterator[Running]:
    running = Running(llm)
    yield running
    running.stop()


def front_ends(running: Running) -> FrontEnds:
    assert isinstance(running.daemon.front, FrontEnds)
    return running.daemon.front


def pids(running: Running) -> dict[int, int]:
    """Of front ends that take connections, by place."""
    return {place: link.pid for place, link in tuple(front_ends(running).links.items()) if link.ready}


def busy(running: Running) -> list[int]:
    """Process ids of front ends that have asked for something."""
    return [link.pid for link in tuple(front_ends(running).links.values()) if link.orders]


@contextlib.contextmanager
def standing_still(llm: LLM) -> Iterator[None]:
    """Nothing ends by itself meanwhile."""
    os.kill(llm.lanes[0].pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(llm.lanes[0].pid, signal.SIGCONT)


def ask(running: Running, path: str, body: object = None, key: str = "") -> tuple[int, bytes]:
    """Ask on a connection of its own."""
    connection = http.client.HTTPConnection(running.url.removeprefix("http://"), timeout=WAIT_S)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    with contextlib.closing(connection):
        connection.request("POST" if body else "GET", path, json.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()


def post(running: Running, path: str, **body: object) -> tuple[int, Any]:
    """What does not differ from answer to answer."""
    status, said = ask(running, path, {"model": "tiny", **body})
    answer = json.loads(said)
    for name in ("id", "created"):
        answer.pop(name, None)
    return status, answer


def page(running: Running) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """All metrics."""
    return parse(ask(running, "/metrics")[1].decode())


def counts(running: Running) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """What questions have counted."""
    names = ("cuelight_request_", "cuelight_generation_", "cuelight_e2e_", "cuelight_inter_", "cuelight_rejects")
    return {key: value for key, value in page(running).items() if key[0].startswith(names)}


QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("/v1/chat/completions", {"messages": CHAT, "max_tokens": 20, "temperature": 1.2, "seed": 1 << 63, "n": 3}),
    ("/v1/chat/completions", {"messages": CHAT, "max_tokens": 6, "seed": 1, "logprobs": True, "top_logprobs": 3}),
    ("/v1/chat/completions", {"messages": CHAT, "max_tokens": 40, "temperature": 0, "response_format": {
        "type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA, "strict": True}}}),
    ("/v1/chat/completions", {"messages": CHAT, "max_tokens": 4, "temperature": 0, "tier": "vip", "suggestions": 2}),
    ("/v1/completions", {"prompt": ["abc", "hello"], "max_tokens": 30, "temperature": 0, "stop": ["b", "l"]}),
    ("/v1/completions", {"prompt": "abc", "max_tokens": 4, "logit_bias": {"3": 100, "4": 99.5}}),
    ("/v1/completions", {"prompt": "", "max_tokens": 4}),
    ("/v1/completions", {"prompt": "a", "tier": "none"}),
    ("/v1/completions", {"prompt": "a", "max_tokens": 5000}),
    ("/tokenize", {"prompt": "hello"}),
]  # fmt: skip


def test_answers_are_those_of_one_process(one: Running, several: Running) -> None:
    for path, body in QUESTIONS:
        asked = {"logit_bias": {"2": -100}, **body}
        expected = post(one, path, **asked)
        # Each on a connection of its own, so both front ends have some.
        for _ in range(2):
            assert post(several, path, **asked) == expected
    with one.client() as client, several.client() as other:
        more: dict[str, Any] = {
            "max_tokens": 40,
            "n": 2,
            "stream": True,
            "stream_options": {"include_usage": True},
            "seed": 5,
        }
        said, heard = list(chat(client, temperature=1.0, **more)), list(chat(other, temperature=1.0, **more))
    for index in (0, 1):
        assert text_of(heard, index) == text_of(said, index)
        assert finishes(heard, index) == finishes(said, index)
    assert heard[-1].usage == said[-1].usage
    for path in ("/health", "/ready", "/version", "/openapi.json"):
        assert ask(several, path) == ask(one, path)
    models = [json.loads(ask(several, "/v1/models")[1]) for _ in range(4)]
    assert all(told == models[0] for told in models)


def test_who_leaves_is_worked_for_no_longer(several: Running, llm: LLM) -> None:
    with several.client() as client:
        stream = chat(client, stream=True, **FOREVER)
        next(iter(stream))
        with standing_still(llm):
            [request] = llm.device.requests
            stream.close()
            until(lambda: request.cancelled)
    assert_at_rest(llm.device)
    until(lambda: not busy(several))


def test_a_front_end_that_is_killed_gives_back_and_is_started_again(several: Running, llm: LLM) -> None:
    before = pids(several)
    with several.client() as client:
        stream = chat(client, stream=True, **FOREVER)
        next(iter(stream))
        with standing_still(llm):
            [request] = llm.device.requests
            [victim] = busy(several)
            counted = counts(several)
            os.kill(victim, signal.SIGKILL)
            with pytest.raises(openai.APIConnectionError):
                list(stream)
            until(lambda: request.cancelled)
    assert_at_rest(llm.device)
    until(lambda: victim not in pids(several).values() and len(pids(several)) == FRONT_ENDS)
    [place] = [place for place, pid in before.items() if pid == victim]
    assert {at: pid for at, pid in pids(several).items() if at != place} == {
        at: pid for at, pid in before.items() if at != place
    }
    # Whoever is led to the new one waits for it, and what the old one counted stays.
    for _ in range(8):
        assert post(several, "/v1/completions", prompt="abc", max_tokens=2)[0] == 200
    after = counts(several)
    assert all(after[key] >= value for key, value in counted.items())
    told = page(several)
    assert told["cuelight_front_ends_lost_total", ()] == 1
    assert told["cuelight_front_ends", ()] == FRONT_ENDS


def test_metrics_add_up_and_are_the_same_everywhere(several: Running) -> None:
    before = counts(several)
    asked = 12
    for _ in range(asked):
        fields = {"prompt": "abc", "max_tokens": 3, "logit_bias": {"2": -100}, "tier": "vip"}
        assert post(several, "/v1/completions", **fields)[0] == 200
    after = counts(several)

    def more(name: str, **labels: str) -> float:
        key = (f"cuelight_{name}", tuple(sorted(labels.items())))
        return after[key] - before.get(key, 0.0)

    assert more("e2e_request_latency_seconds_count", tier="vip") == asked
    assert more("generation_tokens_total", tier="vip") == 3 * asked
    assert more("inter_token_latency_seconds_count", tier="vip") == 2 * asked
    assert more("request_generation_tokens_bucket", tier="vip", le="4.0") == asked
    assert more("request_success_total", tier="vip", finished_reason="length") == asked
    assert all(counts(several) == after for _ in range(6))


def test_connections_are_counted_together(several: Running) -> None:
    """However the kernel spreads them."""
    with contextlib.ExitStack() as undo:
        for _ in range(CONNECTIONS):
            place = several.url.removeprefix("http://")
            connection = undo.enter_context(contextlib.closing(http.client.HTTPConnection(place, timeout=WAIT_S)))
            connection.request("GET", "/version")
            assert connection.getresponse().status == 200
        status, said = ask(several, "/version")
        assert status == 503
        assert json.loads(said)["error"]["message"].startswith(f"There are {CONNECTIONS} connections, as many as may")
    until(lambda: ask(several, "/version")[0] == 200)


def test_settings_reach_all(several: Running) -> None:
    several.change(keys={"carol": {"key": "a-key-of-carol"}})
    try:
        for _ in range(8):
            assert ask(several, "/v1/models", key="a-key-of-carol")[0] == 200
            assert ask(several, "/v1/models", key="a-key-of-alice")[0] == 401
    finally:
        several.change(keys={})


def test_a_front_end_that_stands_still_is_replaced(several: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_link, "_SILENCE", 2)
    victim = next(iter(pids(several).values()))
    os.kill(victim, signal.SIGSTOP)
    until(lambda: victim not in pids(several).values() and len(pids(several)) == FRONT_ENDS)
    assert post(several, "/v1/completions", prompt="abc", max_tokens=2)[0] == 200


def test_what_a_front_end_can_not_take_at_once_comes_later(several: Running, llm: LLM) -> None:
    """More than the channel holds: what it does not take stays with the requests."""
    bias = dict.fromkeys(range(3), -100.0)
    fields = {"max_tokens": 300, "temperature": 0, "logit_bias": bias, "logprobs": 20, "stream": True}
    body = {"model": "tiny", "prompt": ["a"] * 8, **fields}
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, several, "/v1/completions", body)
        until(lambda: bool(busy(several)))
        [slow] = busy(several)
        os.kill(slow, signal.SIGSTOP)
        try:
            until(lambda: len(llm.device.requests) == 0)
        finally:
            os.kill(slow, signal.SIGCONT)
        status, said = asked.result(WAIT_S)
    assert status == 200
    *events, done, rest = said.split(b"\n\n")
    assert (done, rest) == (b"data: [DONE]", b"")
    texts = [""] * 8
    for event in events:
        for choice in json.loads(event.removeprefix(b"data: "))["choices"]:
            texts[choice["index"]] += choice["text"]
    request = llm.generate("a", 300, temperature=0, logit_bias=bias)
    assert texts == [request.text()] * 8
    assert request.metrics.new_tokens == 300


def test_front_ends_that_never_begin_end_the_daemon(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_ends_module, "_PROGRAM", ("-c", "raise SystemExit(7)"))
    monkeypatch.setattr(front_ends_module, "_REST_S", 0.01)
    settings = Settings.model_validate({"server": SERVER})
    daemon = Daemon(DeviceCore(llm, "tiny", lambda: settings), listen(settings.server))
    with pytest.raises(FrontEndsFail, match="Front ends end with status 7 before they have begun; see what they wrote"):
        daemon.run()
