"""Chats with OpenAI's own client."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest

from cuelight import LLM

from ..host.checks import assert_at_rest
from .asking import CHAT, chat, finishes, text_of


def test_a_streamed_answer_is_the_whole_one_in_pieces(client: openai.OpenAI, llm: LLM) -> None:
    whole = chat(client, max_tokens=20)
    assert whole.choices[0].message.content == llm.generate(CHAT, 20, temperature=0).text()
    assert whole.choices[0].finish_reason in ("length", "stop")
    assert whole.usage.prompt_tokens == len(llm.encode(CHAT))
    chunks = list(chat(client, max_tokens=20, stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert text_of(chunks) == whole.choices[0].message.content
    assert finishes(chunks) == [whole.choices[0].finish_reason]
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


def test_an_unknown_model_is_not_found(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="There is no model 'gpt-9' here; ask for tiny"):
        chat(client, model="gpt-9")


def test_several_answers_have_seeds_that_count_up(client: openai.OpenAI, llm: LLM) -> None:
    expected = [llm.generate(CHAT, 12, temperature=1.5, seed=seed).text() for seed in (7, 8, 9)]
    options: dict[str, Any] = {"n": 3, "seed": 7, "temperature": 1.5, "max_tokens": 12}
    whole = chat(client, **options)
    assert [choice.message.content for choice in whole.choices] == expected
    assert len(set(expected)) == 3
    chunks = list(chat(client, stream=True, **options))
    assert [text_of(chunks, index) for index in range(3)] == expected
    assert all(len(finishes(chunks, index)) == 1 for index in range(3))


def test_answers_to_a_long_prompt_share_its_prefill(client: openai.OpenAI) -> None:
    content = "ca" * 70
    whole = chat(client, content, n=2, max_tokens=2, logit_bias={"2": -100})
    assert whole.usage.completion_tokens == 4
    again = chat(client, content, max_tokens=2)
    assert again.usage.prompt_tokens_details.cached_tokens >= 64


@pytest.mark.parametrize("stream", [False, True])
def test_a_stop_text_ends_an_answer_and_its_work(client: openai.OpenAI, llm: LLM, stream: bool) -> None:
    text = llm.generate(CHAT, 40, temperature=0, logit_bias={2: -100.0}).text()
    options: dict[str, Any] = {"max_tokens": 200, "logit_bias": {"2": -100}, "stop": [text[9:12], "no such text"]}
    if stream:
        chunks = list(chat(client, stream=True, **options))
        said, how = text_of(chunks), finishes(chunks)
    else:
        whole = chat(client, **options)
        said, how = whole.choices[0].message.content, [whole.choices[0].finish_reason]
    assert said == text[: text.index(text[9:12])]
    assert how == ["stop"]
    assert_at_rest(llm.device)


def test_log_probabilities_add_up_to_the_text(client: openai.OpenAI) -> None:
    options: dict[str, Any] = {"max_tokens": 8, "logprobs": True, "top_logprobs": 2}
    whole = chat(client, **options).choices[0]
    told = whole.logprobs.content
    assert b"".join(bytes(token.bytes) for token in told).decode() == whole.message.content
    for token in told:
        assert token.logprob == max(other.logprob for other in token.top_logprobs) <= 0
        assert len(token.top_logprobs) == 2
    chunks = [chunk.choices[0] for chunk in chat(client, stream=True, **options)]
    streamed = [token for choice in chunks for token in (choice.logprobs.content if choice.logprobs else [])]
    assert [token.token for token in streamed] == [token.token for token in told]


def test_settings_of_a_question_are_those_of_the_library(client: openai.OpenAI, llm: LLM) -> None:
    filters: Any = {"top_p": 0.9, "presence_penalty": 0.5, "frequency_penalty": 0.5}
    more: Any = {"top_k": 20, "min_p": 0.01, "repetition_penalty": 1.2}
    expected = llm.generate(CHAT, 20, temperature=2.0, seed=3, **filters, **more).text()
    whole = chat(client, max_completion_tokens=20, temperature=2.0, seed=3, extra_body=more, **filters)
    assert whole.choices[0].message.content == expected


def test_many_at_once_get_what_each_gets_alone(client: openai.OpenAI, llm: LLM) -> None:
    prompts = [f"{letter}{letter}ab" for letter in "abcdefghijklmnop"]
    alone = [llm.generate([{"role": "user", "content": prompt}], 16, temperature=0).text() for prompt in prompts]
    with ThreadPoolExecutor(16) as pool:
        together = list(
            pool.map(lambda prompt: text_of(list(chat(client, prompt, stream=True, max_tokens=16))), prompts)
        )
    assert together == alone
    assert_at_rest(llm.device)
