"""Who may ask in which tier, what a tier's promise means to a client, and settings that change meanwhile."""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import openai
import pytest

from cuelight import LLM

from ..host.checks import assert_at_rest, until
from .asking import chat, finishes, text_of
from .conftest import WAIT_S, Running


def tiers(promise_ms: float) -> dict[str, Any]:
    late = {"first_token_ms": promise_ms}
    return {
        "vip": {"level": 0, "when_late": "refuse", **late},
        "standard": {"level": 1, "when_late": "degrade", "cached_answer": "Busy; later.", **late},
        "best-effort": {"level": 3, "min_seats": 2, "queue": 1},
    }


SETTINGS: dict[str, Any] = {
    "tiers": tiers(60_000.0),
    "keys": {
        "alice": {"key": "a-key-of-alice"},
        "bob": {
            "sha256": hashlib.sha256(b"a-key-of-bob").hexdigest(),
            "tiers": ["standard", "best-effort"],
            "tier": "best-effort",
        },
    },
}
FOREVER: dict[str, Any] = {"max_tokens": 200, "logit_bias": {"2": -100}}


@pytest.fixture(scope="module")
def keyed(llm: LLM) -> Iterator[Running]:
    running = Running(llm, **SETTINGS)
    yield running
    running.stop()


@pytest.fixture
def alice(keyed: Running) -> Iterator[openai.OpenAI]:
    with keyed.client("a-key-of-alice") as client:
        yield client


@pytest.fixture
def bob(keyed: Running) -> Iterator[openai.OpenAI]:
    with keyed.client("a-key-of-bob") as client:
        yield client


@pytest.fixture
def full_house(keyed: Running, llm: LLM, alice: openai.OpenAI) -> Iterator[None]:
    """Every place on the device is taken by alice's VIPs, and its lane stands still."""
    places = llm.device.status().groups[0].seats + 1
    with ThreadPoolExecutor(places) as pool:
        os.kill(llm.lanes[0].pid, signal.SIGSTOP)
        try:
            asked = [pool.submit(chat, alice, service_tier="priority", max_tokens=1) for _ in range(places)]
            until(lambda: keyed.core.admission.under_way("vip") == places)
            keyed.change(tiers=tiers(1.0))
            yield
        finally:
            keyed.change(tiers=SETTINGS["tiers"])
            os.kill(llm.lanes[0].pid, signal.SIGCONT)
        for one in asked:
            assert one.result(WAIT_S).usage.completion_tokens == 1
    assert_at_rest(llm.device)


def test_without_the_right_key_nothing_is_told(keyed: Running) -> None:
    for key in ("a-key-of-alice-", "a-key-of-carol"):
        with keyed.client(key) as client:
            with pytest.raises(openai.AuthenticationError, match="This API key is not known here"):
                chat(client)
            with pytest.raises(openai.AuthenticationError):
                client.models.list()
    for said in (b"", b"Bearer", b"Basic a-key-of-alice", b"Bearer \xff\xfe"):
        response = httpx2.get(f"{keyed.url}/v1/models", headers={b"Authorization": said})
        assert (response.status_code, response.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert httpx2.get(f"{keyed.url}/v1/models", headers={b"Authorization": b"bearer a-key-of-alice"}).is_success


def test_a_tier_is_chosen_by_field_header_or_openais_names(alice: openai.OpenAI, bob: openai.OpenAI) -> None:
    assert chat(alice, max_tokens=1).service_tier == "standard"
    assert chat(alice, max_tokens=1, extra_body={"tier": "vip"}).service_tier == "vip"
    assert chat(alice, max_tokens=1, extra_headers={"X-Cuelight-Tier": "best-effort"}).service_tier == "best-effort"
    assert chat(alice, max_tokens=1, service_tier="priority").service_tier == "vip"
    assert chat(alice, max_tokens=1, service_tier="flex").service_tier == "best-effort"
    assert chat(bob, max_tokens=1).service_tier == "best-effort"
    assert chat(bob, max_tokens=1, service_tier="priority").service_tier == "standard"
    with pytest.raises(openai.PermissionDeniedError, match="may not use the tier vip; use standard or best-effort"):
        chat(bob, extra_body={"tier": "vip"})
    with pytest.raises(openai.BadRequestError, match="There is no tier 'first'"):
        chat(bob, service_tier="first")


def test_the_device_is_told_what_each_tier_is_granted(keyed: Running, llm: LLM) -> None:
    assert [tier.min_seats for tier in llm.device.status().tiers] == [0, 0, 0, 2]
    assert [tier.seat_floor for tier in llm.device.status().tiers] == [0, 1, 2, 3]


@pytest.mark.usefixtures("full_house")
def test_a_promise_that_can_not_be_kept(alice: openai.OpenAI) -> None:
    with pytest.raises(openai.RateLimitError, match="The tier vip would have to wait") as refused:
        chat(alice, extra_body={"tier": "vip"})
    assert int(refused.value.response.headers["Retry-After"]) >= 1
    whole = chat(alice)
    assert (whole.choices[0].message.content, whole.to_dict()["degraded"]) == ("Busy; later.", True)
    assert whole.usage.completion_tokens == 0
    chunks = list(chat(alice, stream=True))
    assert text_of(chunks) == "Busy; later."
    assert all(chunk.to_dict()["degraded"] for chunk in chunks)


@pytest.mark.usefixtures("full_house")
def test_a_full_queue(keyed: Running, llm: LLM, alice: openai.OpenAI, bob: openai.OpenAI) -> None:
    with ThreadPoolExecutor(1) as pool:
        # Two have seats of their own, whatever others take.
        streams = [chat(bob, stream=True, **FOREVER) for _ in range(2)]
        waiting = pool.submit(chat, bob, max_tokens=1)
        until(lambda: keyed.core.admission.waiting("best-effort") == 1)
        with pytest.raises(openai.RateLimitError, match="1 requests wait in the tier best-effort, as many as may"):
            chat(alice, extra_body={"tier": "best-effort"})
        for stream in streams:
            stream.close()
        assert not waiting.done()
        os.kill(llm.lanes[0].pid, signal.SIGCONT)
        # Those who left have made room.
        assert waiting.result(WAIT_S).usage.completion_tokens == 1


def test_settings_change_without_a_restart(keyed: Running, llm: LLM, alice: openai.OpenAI) -> None:
    stream = chat(alice, stream=True, **FOREVER)
    keyed.change(keys={"carol": {"key": "a-key-of-carol"}}, tiers={"standard": {"level": 1, "min_seats": 5}})
    assert llm.device.status().tiers[1].min_seats == 5
    with keyed.client("a-key-of-carol") as carol:
        assert chat(carol, max_tokens=1).service_tier == "standard"
        with pytest.raises(openai.AuthenticationError):
            chat(alice)
        # What can't be leaves everything as it was.
        keyed.change(tiers={"standard": {"level": 9}})
        assert chat(carol, max_tokens=1).service_tier == "standard"
        assert llm.device.status().tiers[1].min_seats == 5
    # Who was let in before goes on.
    assert finishes(list(stream)) == ["length"]
    keyed.change(**SETTINGS)
    assert chat(alice, max_tokens=1).service_tier == "standard"
