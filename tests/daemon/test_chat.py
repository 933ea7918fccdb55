"""Chats with OpenAI's own client."""

from __future__ import annotations

import openai
import pytest

from cuelight import LLM

CHAT = [{"role": "user", "content": "abc"}]


def test_a_streamed_answer_is_the_whole_one_in_pieces(client: openai.OpenAI, llm: LLM) -> None:
    whole = client.chat.completions.create(model="tiny", messages=CHAT, max_tokens=20, temperature=0)
    assert whole.choices[0].message.content == llm.generate(CHAT, 20, temperature=0).text()
    assert whole.choices[0].finish_reason in ("length", "stop")
    assert whole.usage.prompt_tokens == len(llm.encode(CHAT))
    stream = client.chat.completions.create(
        model="tiny", messages=CHAT, max_tokens=20, temperature=0, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]) == whole.choices[0].message.content
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1] if chunk.choices[0].finish_reason] == [
        whole.choices[0].finish_reason
    ]
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


def test_an_unknown_model_is_not_found(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="There is no model 'gpt-9' here; ask for tiny"):
        client.chat.completions.create(model="gpt-9", messages=CHAT)
