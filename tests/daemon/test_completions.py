"""Texts, models and tokens with OpenAI's own client."""

from __future__ import annotations

import gc
from typing import Any

import httpx2
import openai
import pytest

from cuelight import LLM, Request
from cuelight.daemon.generation import Generation

from ..host.checks import until
from .asking import error_of
from .conftest import Running


def complete(client: openai.OpenAI, prompt: Any, **fields: Any) -> Any:
    body: dict[str, Any] = {"model": "tiny", "prompt": prompt, "temperature": 0, **fields}
    return client.completions.create(**body)


def test_prompts_are_gone_on_from_as_the_library_does(client: openai.OpenAI, llm: LLM) -> None:
    expected = [llm.generate(prompt, 12, temperature=0).text() for prompt in ("abc", "hello")]
    answer = complete(client, ["abc", "hello"], max_tokens=12)
    assert [choice.text for choice in answer.choices] == expected
    assert [choice.index for choice in answer.choices] == [0, 1]
    assert answer.usage.prompt_tokens == sum(len(llm.encode(prompt)) for prompt in ("abc", "hello"))
    chunks = list(complete(client, [llm.encode("abc"), llm.encode("hello")], max_tokens=12, stream=True))
    for index in (0, 1):
        texts = [choice.text for chunk in chunks for choice in chunk.choices if choice.index == index]
        assert "".join(texts) == expected[index]


def test_sixteen_tokens_unless_told_otherwise(client: openai.OpenAI) -> None:
    answer = complete(client, "abc", logit_bias={"2": -100})
    assert (answer.usage.completion_tokens, answer.choices[0].finish_reason) == (16, "length")


def test_an_answer_leaves_nothing_to_the_garbage_collector(client: openai.OpenAI) -> None:
    """Its tokens would wait for it in thousands, and everybody else while they are looked through."""
    gc.collect()
    gc.disable()
    try:
        complete(client, "abc", max_tokens=12, n=3)
        list(complete(client, "abc", max_tokens=12, stream=True))
        until(lambda: not [one for one in gc.get_objects() if isinstance(one, (Generation, Request))])
    finally:
        gc.enable()


def test_log_probabilities_name_each_token_and_its_place(client: openai.OpenAI) -> None:
    told = complete(client, "abc", max_tokens=6, logprobs=3).choices[0]
    places = zip(told.logprobs.text_offset, told.logprobs.tokens, strict=True)
    assert all(told.text[offset:].startswith(token) for offset, token in places)
    for token, logprob, likeliest in zip(
        told.logprobs.tokens, told.logprobs.token_logprobs, told.logprobs.top_logprobs, strict=True
    ):
        assert likeliest[token] == logprob == max(likeliest.values())
        assert len(likeliest) == 3


def test_models_and_version_are_told(client: openai.OpenAI, running: Running, llm: LLM) -> None:
    assert [model.id for model in client.models.list()] == ["tiny"]
    assert client.models.retrieve("tiny").to_dict()["max_model_len"] == llm.device.context
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-9")
    assert httpx2.get(f"{running.url}/version").json()["rtl_hash"] == llm.device.status().rtl_hash


def test_text_to_tokens_and_back(running: Running, llm: LLM) -> None:
    told = httpx2.post(f"{running.url}/tokenize", json={"prompt": "abc"}).json()
    assert told == {"count": 2, "max_model_len": llm.device.context, "tokens": llm.encode("abc")}
    messages = [{"role": "user", "content": [{"type": "text", "text": "ab"}, {"type": "text", "text": "c"}]}]
    told = httpx2.post(f"{running.url}/tokenize", json={"messages": messages}).json()
    assert told["tokens"] == llm.encode([{"role": "user", "content": "abc"}])
    text = httpx2.post(f"{running.url}/detokenize", json={"tokens": told["tokens"]}).json()
    assert text == {"prompt": "<|im_start|>user:abc<|im_end|>"}


@pytest.mark.parametrize(
    ("path", "body", "status", "sentence"),
    [
        ("/v1/completions", {"prompt": ""}, 400, "The prompt is empty; give it some text."),
        ("/v1/completions", {"prompt": []}, 400, "The prompt is empty; give it some text."),
        ("/v1/completions", {"prompt": [99_999]}, 400, "The prompt has the token 99999; this model has tokens 0 to"),
        ("/v1/completions", {"prompt": "a" * 1100}, 400, "The prompt has 1100 tokens, and 1023 are possible here; "),
        ("/v1/completions", {"prompt": "a", "max_tokens": 1024}, 400, "A prompt of 1 tokens and 1024 new ones exceed"),
        ("/v1/completions", {"prompt": "a", "n": 9}, 400, "The question asks for 9 answers (1 prompts, n = 9), and"),
        ("/v1/completions", {"prompt": "a", "stop": ["x"] * 17}, 400, "stop may name 16 texts at most here, not 17;"),
        ("/v1/completions", {"prompt": "a", "stop": ""}, 400, "A stop text is empty, so it would end every answer;"),
        ("/v1/completions", {"prompt": "a", "top_p": 0}, 400, "top_p: input should be greater than 0; correct it."),
        ("/v1/completions", {"prompt": "a", "logit_bias": {"99999": 1}}, 400, "logit_bias names the token 99999; "),
        ("/v1/completions", {"prompt": "a", "tier": "best"}, 400, "There is no tier 'best'; use vip or standard or"),
        ("/v1/completions", {"prompt": "a", "echo": True}, 400, "echo: input should be False; correct it."),
        ("/v1/chat/completions", {"messages": []}, 400, "messages: list should have at least 1 item after"),
        ("/tokenize", {}, 400, "The body: value error, give either prompt or messages; correct it."),
        ("/nowhere", {}, 404, "There is nothing at /nowhere; see /docs for what there is."),
    ],
)
def test_what_can_not_be_is_refused_in_a_sentence(
    running: Running, path: str, body: dict[str, Any], status: int, sentence: str
) -> None:
    response = httpx2.post(f"{running.url}{path}", json={"model": "tiny", **body})
    assert response.status_code == status
    assert error_of(response)["message"].startswith(sentence)
    assert error_of(response)["message"].count(".") == 1 or "v1" in path


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[1]",
        b'{"model": NaN}',
        b'{"model": "tiny", "prompt": "\\ud800"}',
        b'{"model": "tiny", "prompt": "a", "user": ' + b"[" * 100_000,
    ],
    ids=["nothing", "open", "no text", "no object", "no model", "half a character", "deep"],
)
@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_what_is_no_json_is_refused(running: Running, path: str, body: bytes) -> None:
    response = httpx2.post(f"{running.url}{path}", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    assert error_of(response)["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 200),
        ("Application/JSON; charset=utf-8", 200),
        ("application/vnd.some+json", 200),
        ("text/plain", 400),
        ("application/x-www-form-urlencoded", 400),
        ("", 400),
    ],
)
def test_a_body_has_to_say_that_it_is_json(running: Running, kind: str, status: int) -> None:
    body = b'{"model": "tiny", "prompt": "a", "max_tokens": 1}'
    response = httpx2.post(f"{running.url}/v1/completions", content=body, headers={"Content-Type": kind})
    assert response.status_code == status
    if status == 400:
        assert error_of(response)["message"] == (
            "The body has to be JSON; send it with the header 'Content-Type: application/json'."
        )
