"""What the daemon costs: a lane that answers at once, a client that does little, all on the same two cores.

The daemon, a lane that runs no model, and this client are three processes. Questions are chats, answers have 16
tokens, or 256 where they are streamed.

- Added latency: the median of one client's questions, one after the other, less the median of the same requests given
  to the driver in the daemon's process. Both take turns.
- Questions a second: 16 clients, answers in one piece.
- Tokens a second: 64 clients, streamed. Each text must be what the lane said, to the last token: what does not come in
  an event of its own comes together with others in the next one.
- The longest pause of the garbage collector in all of it.

Predicted before the first run, for two cores with nothing else to do. A question passes uvicorn, two middlewares,
FastAPI, pydantic, the chat template, the tokenizer and two changes of threads: 0.7 ms of Python, so 0.9 ms are added.
The driver's threads share the interpreter's lock, 0.4 ms for 16 tokens of a batch: 700 questions a second. A token
that is streamed alone costs 15 µs to deliver, 25 µs to make an event of and 10 µs to send: 20,000 a second, 1.5 tokens
an event. The collector does not look at what the process had when it began, so that its longest pause is 3 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import Sequence
from typing import Any

import uvloop

from asking import Connection, Reply, text_of
from cuelight.engine.tokenizer import Tokenizer
from cuelight.engine.weights import DEFAULT_MODEL, resolve
from saying_lane import saying
from serving import Serving

ADDED_MS, QUESTIONS_PER_S, TOKENS_PER_S, PAUSE_MS = 1.0, 500.0, 10_000.0, 10.0
NEW_TOKENS, STREAMED_TOKENS = 16, 256
CLIENTS, STREAMS = 16, 64
MESSAGES = [{"role": "user", "content": "What does a cue light tell the crew?"}]
PROMPT_TOKENS = 20
ROUND = 50


def main() -> None:
    """Print a line for each bar."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--seconds", type=float, default=15.0, help="how long clients ask, and streams go on")
    parser.add_argument("--rounds", type=int, default=10, help=f"turns of {ROUND} questions each for the added latency")
    options = parser.parse_args()
    with Serving("saying") as serving:
        bench = Bench(serving)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(bench.run(options.rounds, options.seconds))
    print(f"load {os.getloadavg()[0]:.1f}")


class Bench:
    """The measurements."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        tokenizer = Tokenizer(resolve(DEFAULT_MODEL))
        self._text = {count: tokenizer.decode(saying(tokenizer, count)) for count in (NEW_TOKENS, STREAMED_TOKENS)}

    async def run(self, rounds: int, seconds: float) -> None:
        """All of them."""
        await self._ask_for(0.5, CLIENTS, _question(NEW_TOKENS))
        self._serving.ask("longest_pause")
        added_ms, driver_ms = await self._added_ms(rounds)
        driver = f"the driver alone takes {driver_ms:.2f} ms"
        _report("added to a question's latency", added_ms, ADDED_MS, "ms", at_most=True, more=driver)
        replies, took_s = await self._ask_for(seconds, CLIENTS, _question(NEW_TOKENS))
        for reply in replies:
            self._check(reply.body["choices"][0]["message"]["content"] == self._text[NEW_TOKENS])
        _report("questions a second", len(replies) / took_s, QUESTIONS_PER_S, "", more=_percentiles(replies))
        question = _question(STREAMED_TOKENS) | {"stream": True, "stream_options": {"include_usage": True}}
        replies, took_s = await self._ask_for(seconds, STREAMS, question)
        events = sum(self._check_stream(reply) for reply in replies)
        tokens = len(replies) * STREAMED_TOKENS
        more = f"{len(replies)} streams, {tokens / events:.2f} tokens an event, none lost"
        _report("streamed tokens a second", tokens / took_s, TOKENS_PER_S, "", more=more)
        pause_ms = 1000 * self._serving.ask("longest_pause")
        _report("garbage collector's longest pause", pause_ms, PAUSE_MS, "ms", at_most=True)

    async def _added_ms(self, rounds: int) -> tuple[float, float]:
        connection = await Connection.open(self._serving.host, self._serving.port)
        question = _question(NEW_TOKENS)
        prompt = list(range(1000, 1000 + PROMPT_TOKENS))
        with_daemon: list[float] = []
        without: list[float] = []
        for _ in range(rounds):
            without += self._serving.ask("driver_latency", prompt, NEW_TOKENS, ROUND)
            for _ in range(ROUND):
                reply = await connection.ask(question)
                with_daemon.append(reply.ended - reply.asked)
        connection.close()
        driver_s = statistics.median(without)
        return 1000 * (statistics.median(with_daemon) - driver_s), 1000 * driver_s

    async def _ask_for(self, seconds: float, clients: int, question: dict[str, Any]) -> tuple[list[Reply], float]:
        """Replies that clients get who ask again and again, and how long that took in all."""
        until = time.perf_counter() + seconds
        replies: list[Reply] = []

        async def ask() -> None:
            connection = await Connection.open(self._serving.host, self._serving.port)
            while time.perf_counter() < until:
                replies.append(await connection.ask(question))
            connection.close()

        begun = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(clients):
                group.create_task(ask())
        return replies, time.perf_counter() - begun

    def _check_stream(self, reply: Reply) -> int:
        """Events with text; all of the text must be there."""
        events = reply.events
        texts = [text for event in events if (text := text_of(event))]
        self._check("".join(texts) == self._text[STREAMED_TOKENS])
        self._check(events[-1]["usage"]["completion_tokens"] == STREAMED_TOKENS)
        return len(texts)

    def _check(self, right: bool) -> None:
        if not right:
            raise SystemExit("An answer is not what the lane has said.")


def _question(new_tokens: int) -> dict[str, Any]:
    return {"model": DEFAULT_MODEL, "messages": MESSAGES, "max_tokens": new_tokens, "temperature": 0}


def _percentiles(replies: Sequence[Reply]) -> str:
    took_ms = sorted(1000 * (reply.ended - reply.asked) for reply in replies)
    return f"median {statistics.median(took_ms):.1f} ms, p99 {took_ms[int(0.99 * len(took_ms))]:.1f} ms"


def _report(what: str, value: float, bar: float, unit: str, *, at_most: bool = False, more: str = "") -> None:
    held = value <= bar if at_most else value >= bar
    print(
        f"{what:36}{value:>10,.2f} {unit:3} bar {'≤' if at_most else '≥'} {bar:>8,g}: {'held' if held else 'MISSED'}"
        f"{'   ' + more if more else ''}",
        flush=True,
    )


if __name__ == "__main__":
    main()
