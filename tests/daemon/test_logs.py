"""The log: a JSON object a line, the request's id in each, and its text only where that is asked for."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from cuelight import LLM
from cuelight.daemon.logs import write_json_lines

from ..host.checks import until
from .conftest import Running

SECRET = "cde"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler = write_json_lines(stream, "info")
    yield stream
    logging.getLogger().removeHandler(handler)


def lines(log: io.StringIO, message: str = "request") -> list[dict[str, Any]]:
    """What was told; the line about a request comes when its client has its answer already."""

    def told() -> list[dict[str, Any]]:
        return [line for line in map(json.loads, log.getvalue().splitlines()) if line["message"] == message]

    until(lambda: bool(told()))
    return told()


def ask(client: openai.OpenAI, **headers: str) -> Any:
    return client.chat.completions.with_raw_response.create(
        model="tiny", messages=[{"role": "user", "content": SECRET}], max_tokens=4, extra_headers=headers
    )


def test_a_question_is_one_line_with_its_id_and_none_of_its_text(
    log: io.StringIO, running: Running, client: openai.OpenAI
) -> None:
    answer = ask(client, **{"X-Request-Id": "mine-1"})
    assert answer.headers["x-request-id"] == "mine-1"
    (line,) = lines(log)
    assert (line["request_id"], line["path"], line["status"]) == ("mine-1", "/v1/chat/completions", 200)
    assert (line["tier"], line["level"]) == ("standard", "info")
    assert line["new_tokens"] == answer.parse().usage.completion_tokens
    assert line["outcome"] in ("stop", "length")
    assert line["ms"] > 0
    assert SECRET not in log.getvalue()


@pytest.mark.parametrize("given", ["", "a b", "x" * 129, 'a"b', "é"])
def test_an_id_that_is_not_sane_is_replaced(log: io.StringIO, client: openai.OpenAI, given: str) -> None:
    answer = ask(client, **({"X-Request-Id": given.encode("latin-1").decode("latin-1")} if given.isascii() else {}))
    own = answer.headers["x-request-id"]
    assert len(own) == 32
    assert lines(log)[-1]["request_id"] == own


def test_what_is_refused_is_told_with_its_status(log: io.StringIO, client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="another", messages=[{"role": "user", "content": SECRET}])
    (line,) = lines(log)
    assert line["status"] == 404
    assert SECRET not in log.getvalue()


def test_text_is_logged_only_where_settings_say_so(log: io.StringIO, llm: LLM) -> None:
    running = Running(llm, log={"text": True})
    with running.client() as client:
        answer = ask(client).parse().choices[0].message.content
    running.stop()
    (line,) = lines(log)
    assert SECRET in line["prompts"][0]
    assert line["answers"] == [answer]


def test_an_exception_is_one_line(log: io.StringIO) -> None:
    try:
        raise KeyError("gone")
    except KeyError:
        logging.getLogger("cuelight.test").exception("It went wrong")
    (line,) = lines(log, "It went wrong")
    assert "KeyError" in line["traceback"]
