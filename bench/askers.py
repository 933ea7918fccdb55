"""Clients that ask one question again and again, in a process of their own; how many of these is the bench's choice."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import uvloop

from asking import Connection, Reply, text_of

__all__ = ["Asked", "ask_for"]

_LIMIT_S = 120.0


@dataclass
class Asked:
    """What clients got."""

    took_s: float
    """Longest of all processes."""
    processor_s: float
    """Of these processes."""
    events: int
    """With text, where answers are streamed."""
    latencies_s: list[float]
    """Of each answer."""


def ask_for(
    host: str, port: int, seconds: float, clients: int, processes: int, question: Mapping[str, Any], text: str
) -> Asked:
    """Have clients ask for a while.

    Parameters
    ----------
    host, port : str, int
        Whom.
    seconds : float
        For how long; what is asked then is waited for.
    clients, processes : int
        How many of each; processes share the clients.
    question : mapping
        What.
    text : str
        What each answer must be.

    Raises
    ------
    SystemExit
        An answer is another one, or a process has failed.
    """
    shares = [clients // processes + (number < clients % processes) for number in range(processes)]
    started = []
    for share in shares:
        asker = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve())], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert asker.stdin
        told = {"host": host, "port": port, "seconds": seconds, "clients": share, "question": question, "text": text}
        print(json.dumps(told), file=asker.stdin, flush=True)
        started.append(asker)
    for asker in started:
        assert asker.stdout
        asker.stdout.readline()
    for asker in started:
        assert asker.stdin
        print(file=asker.stdin, flush=True)
    all_asked = []
    for asker in started:
        said, _ = asker.communicate(timeout=seconds + _LIMIT_S)
        if asker.returncode:
            raise SystemExit("An answer is not what the lane has said.")
        all_asked.append(Asked(**json.loads(said)))
    return Asked(
        max(asked.took_s for asked in all_asked),
        sum(asked.processor_s for asked in all_asked),
        sum(asked.events for asked in all_asked),
        [latency for asked in all_asked for latency in asked.latencies_s],
    )


class _Clients:
    def __init__(self, host: str, port: int, seconds: float, clients: int, question: dict[str, Any], text: str) -> None:
        self._place = host, port
        self._seconds = seconds
        self._count = clients
        self._question = question
        self._text = text
        self._replies: list[Reply] = []

    async def run(self) -> Asked:
        connections = [await Connection.open(*self._place) for _ in range(self._count)]
        print("ready", flush=True)
        sys.stdin.readline()
        begun, processor_s = time.perf_counter(), time.process_time()
        async with asyncio.TaskGroup() as group:
            for connection in connections:
                group.create_task(self._ask(connection, begun + self._seconds))
        took_s, processor_s = time.perf_counter() - begun, time.process_time() - processor_s
        for connection in connections:
            connection.close()
        check = self._check_stream if self._question.get("stream") else self._check_whole
        events = sum(map(check, self._replies))
        return Asked(took_s, processor_s, events, [reply.ended - reply.asked for reply in self._replies])

    async def _ask(self, connection: Connection, until: float) -> None:
        body = json.dumps(self._question).encode()
        while time.perf_counter() < until:
            self._replies.append(await connection.ask(body))

    def _check_whole(self, reply: Reply) -> int:
        _check(reply.body["choices"][0]["message"]["content"] == self._text)
        return 0

    def _check_stream(self, reply: Reply) -> int:
        """Events with text; all of the text must be there."""
        events = reply.events
        texts = [text for event in events if (text := text_of(event))]
        _check("".join(texts) == self._text)
        _check(events[-1]["usage"]["completion_tokens"] == self._question["max_tokens"])
        return len(texts)


def _check(right: bool) -> None:
    if not right:
        raise SystemExit("An answer is not what the lane has said.")


def main() -> None:
    """Be such a process: what to ask comes as a line, and another line when to begin."""
    clients = _Clients(**json.loads(sys.stdin.readline()))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(asdict(runner.run(clients.run()))))


if __name__ == "__main__":
    main()
