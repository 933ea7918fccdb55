"""Follow-up suggestions: only for who asks for them, and never at the cost of the answer."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from cuelight import LLM
from cuelight.daemon.suggestions import read_suggestions

from .asking import CHAT, chat, text_of


def test_nobody_gets_what_they_did_not_ask_for(client: openai.OpenAI) -> None:
    assert "suggestions" not in chat(client, max_tokens=2).to_dict()
    assert "suggestions" not in chat(client, max_tokens=2, service_tier="flex", extra_body={"suggestions": 3}).to_dict()


def test_suggestions_are_what_the_model_says_to_a_chat_that_asks_for_them(client: openai.OpenAI, llm: LLM) -> None:
    whole = chat(client, max_tokens=4, service_tier="priority", extra_body={"suggestions": 3})
    wish = "Suggest 3 short questions that I could ask you next. Write each on a line of its own, and nothing else."
    messages = [
        *CHAT,
        {"role": "assistant", "content": whole.choices[0].message.content},
        {"role": "user", "content": wish},
    ]
    expected = read_suggestions(llm.generate(messages, 96, temperature=0).text(), 3)
    assert whole.to_dict()["suggestions"] == expected != []
    options: dict[str, Any] = {"stream": True, "service_tier": "priority", "stream_options": {"include_usage": True}}
    chunks = list(chat(client, max_tokens=4, extra_body={"suggestions": 3}, **options))
    assert text_of(chunks) == whole.choices[0].message.content
    assert [chunk.to_dict()["suggestions"] for chunk in chunks if "suggestions" in chunk.to_dict()] == [expected]
    assert chunks[-1].usage == whole.usage


def test_an_answer_without_room_for_suggestions_stands_by_itself(client: openai.OpenAI, llm: LLM) -> None:
    whole = chat(client, "a" * (llm.device.context - 40), max_tokens=4, extra_body={"suggestions": 1}).to_dict()
    assert whole["choices"][0]["message"]["content"]
    assert whole["suggestions"] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1. Why?\n2) How?\n\n- When?", ["Why?", "How?", "When?"]),
        ("* Why?\n* Why?\n(3) 42 of what?", ["Why?", "42 of what?"]),
        ("Why?\nHow?\nWhen?\nWhere?", ["Why?", "How?", "When?"]),
        (" \n\n", []),
    ],
)
def test_lines_are_read_without_bullets_and_numbers(text: str, found: list[str]) -> None:
    assert read_suggestions(text, 3) == found
