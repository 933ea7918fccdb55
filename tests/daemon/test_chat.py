"""Chats with OpenAI's own client."""

from __future__ import annotations

import openai
import pytest

from cuelight import LLM

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
