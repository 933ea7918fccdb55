"""Asking a daemon with OpenAI's own client."""

from __future__ import annotations

from typing import Any

import httpx2
import openai

CHAT = [{"role": "user", "content": "abc"}]


def chat(client: openai.OpenAI, content: str = "abc", **fields: Any) -> Any:
    """Ask for an answer to one message, or for a stream of one."""
    body = {"model": "tiny", "messages": [{"role": "user", "content": content}], "temperature": 0, **fields}
    return client.chat.completions.create(**body)


def text_of(chunks: list[Any], index: int = 0) -> str:
    """Text of one of the answers in a stream."""
    choices = [choice for chunk in chunks for choice in chunk.choices if choice.index == index]
    return "".join(choice.delta.content or "" for choice in choices)


def finishes(chunks: list[Any], index: int = 0) -> list[str]:
    """Finish reasons that a stream tells of one of its answers."""
    choices = [choice for chunk in chunks for choice in chunk.choices if choice.index == index]
    return [choice.finish_reason for choice in choices if choice.finish_reason]


def error_of(response: httpx2.Response) -> Any:
    """What an answer says went wrong."""
    return response.json()["error"]
