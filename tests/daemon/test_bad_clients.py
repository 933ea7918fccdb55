"""Clients that are slow, large, rude or gone: refused in a sentence or cut off, and the service goes on."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from collections.abc import Iterator

import httpx2
import pytest

from cuelight import LLM, Finish

from ..host.checks import assert_at_rest, until
from .asking import chat, error_of
from .conftest import WAIT_S, Running

LIMITS = {"body_bytes": 4096, "connections": 4, "receive_s": 0.5, "stall_s": 0.5}
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n"
LONG = json.dumps(
    {"model": "tiny", "messages": [{"role": "user", "content": "abc"}], "max_tokens": 200, "stream": True,
     "logit_bias": {"2": -100}}
).encode()  # fmt: skip


@pytest.fixture(scope="module")
def strict(llm: LLM) -> Iterator[Running]:
    running = Running(llm, limits=LIMITS)
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def _well_afterwards(strict: Running, llm: LLM) -> Iterator[None]:
    yield
    with strict.client() as client:
        assert chat(client, max_tokens=2).usage.completion_tokens == 2
    assert_at_rest(llm.device)


def connect(running: Running) -> socket.socket:
    host, port = running.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=WAIT_S)


def read_all(connection: socket.socket) -> bytes:
    """What comes until the server closes."""
    said = b""
    while part := connection.recv(65536):
        said += part
    return said


def message(said: bytes) -> tuple[int, str]:
    head, _, body = said.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]["message"]


def test_a_large_body_is_refused_before_it_is_read(strict: Running) -> None:
    with connect(strict) as connection:
        connection.sendall(HEAD + b"Content-Length: 1000000000\r\n\r\n{")
        assert message(read_all(connection)) == (413, "The body has more than 4096 bytes; shorten the question.")


def test_a_body_that_does_not_say_how_large_it_is_is_cut_off(strict: Running) -> None:
    with connect(strict) as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        connection.sendall((b"400\r\n" + b"x" * 1024 + b"\r\n") * 5)
        assert message(read_all(connection)) == (413, "The body has more than 4096 bytes; shorten the question.")


def test_a_body_that_does_not_come_is_not_waited_for(strict: Running) -> None:
    with connect(strict) as connection:
        connection.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
        assert message(read_all(connection)) == (408, "The body did not come within 0.5 s; send it at once.")


@pytest.mark.parametrize("said", [b"", b"\r\n"])
def test_a_connection_that_asks_nothing_is_closed(strict: Running, said: bytes) -> None:
    with connect(strict) as connection:
        connection.sendall(said)
        assert read_all(connection)[:12] in (b"", b"HTTP/1.1 408")


def test_headers_that_do_not_end_are_not_waited_for(strict: Running) -> None:
    with connect(strict) as connection:
        connection.sendall(HEAD)
        assert message(read_all(connection)) == (408, "The headers did not come within 0.5 s; send them at once.")


def test_headers_without_end_are_cut_off(strict: Running) -> None:
    with connect(strict) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000)
        assert message(read_all(connection))[0] == 431


def test_what_is_no_http_is_refused(strict: Running) -> None:
    with connect(strict) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
        assert message(read_all(connection)) == (400, "This is no HTTP request; correct the client.")


def test_more_connections_than_may_be_are_refused(strict: Running) -> None:
    crowd = [connect(strict) for _ in range(4)]
    with connect(strict) as connection:
        status, sentence = message(read_all(connection))
    assert (status, sentence) == (503, "There are 4 connections, as many as may be; close some, or come again later.")
    for connection in crowd:
        read_all(connection)
        connection.close()


def ask(connection: socket.socket, times: int = 1) -> None:
    connection.sendall((HEAD + b"Content-Length: %d\r\n\r\n" % len(LONG) + LONG) * times)


@pytest.mark.parametrize("times", [1, 2])
def test_who_leaves_is_worked_for_no_longer(strict: Running, llm: LLM, times: int) -> None:
    """Also if a second question waits on the same connection."""
    with connect(strict) as connection:
        ask(connection, times)
        assert connection.recv(12) == b"HTTP/1.1 200"
        [request] = llm.device.requests
        # It must not end by itself meanwhile.
        os.kill(llm.lanes[0].pid, signal.SIGSTOP)
    try:
        until(lambda: request.cancelled)
    finally:
        os.kill(llm.lanes[0].pid, signal.SIGCONT)
    assert_at_rest(llm.device)
    assert request.finish is Finish.CANCELLED


def test_who_does_not_read_is_cut_off(strict: Running, llm: LLM) -> None:
    body = json.dumps({**json.loads(LONG), "n": 8, "logprobs": True, "top_logprobs": 20}).encode()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(WAIT_S)
        host, port = strict.url.removeprefix("http://").split(":")
        connection.connect((host, int(port)))
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        until(lambda: bool(llm.device.requests))
        assert_at_rest(llm.device)
        until(lambda: not strict.service.open)
        said = b""
        with contextlib.suppress(ConnectionResetError):
            said = read_all(connection)
        assert b"[DONE]" not in said


def test_a_body_that_is_not_text_is_refused(strict: Running) -> None:
    for body in (b'{"model": "\xff"}', b"\x00" * 100, b"[" * 4000, b'{"messages": ' * 200):
        response = httpx2.post(
            f"{strict.url}/v1/chat/completions", content=body, headers={"Content-Type": "application/json"}
        )
        assert response.status_code == 400
        assert error_of(response)["type"] == "invalid_request_error"
