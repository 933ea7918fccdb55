"""What the daemon costs: a lane that answers at once, a client that does little, all on the same two cores.

The daemon, a lane that runs no model, and this client are three processes. Questions are chats, answers have 16
tokens, or 256 where they are streamed.

- Added latency: the median of one client's questions, one after the other, less the median of such requests given to
  the driver in the daemon's process. Both take turns. Each question is another one, since the daemon does not encode
  again what it knows of a chat; what the chat template writes in front of them is the same.
- Questions a second: 16 clients, answers in one piece.
- Tokens a second: 64 clients, streamed. Each text must be what the lane said, to the last token: what does not come in
  an event of its own comes together with others in the next one.
- The longest pause of the garbage collector in all of it: the processor time that it takes. Beside it stands how long a
  pause was from beginning to end, for more threads than cores are ready to run here.

Predicted before the first run, for two cores with nothing else to do. A question passes uvicorn, two middlewares,
FastAPI, pydantic, the chat template, the tokenizer and two changes of threads: 0.7 ms of Python, so 0.9 ms are added.
The driver's threads share the interpreter's lock, 0.4 ms for 16 tokens of a batch: 700 questions a second. A token
that is streamed alone costs 15 µs to deliver, 25 µs to make an event of and 10 µs to send: 20,000 a second, 1.5 tokens
an event. The collector does not look at what the process had when it began, so that its longest pause is 3 ms.

On two cores of a server of 16, the rest idle, seven runs: 0.62 to 1.04 ms are added, 0.74 in the median; 900 to 1,200
questions, 75,000 to 117,000 streamed tokens a second; pauses of 0.8 to 1.7 ms. Where a hypervisor gives two cores to
others too, a change of processes takes up to 0.1 ms, and there are four of them: 0.9 to 1.2 ms.

Predicted before the first run with `--front-ends`, on the same two cores: a channel costs 0.1 ms of both its ends for a
question, and 2 µs for a token, but text and driver no longer wait for one interpreter's lock. So one front end has 1.3
times the questions and 1.4 times the tokens of none, and adds 0.2 ms more to a question. A second one has no core left
to run on: 0.95 times what one has.

Predicted for 16 cores with `--front-ends 4 --client-processes 4 --clients 64 --streams 128`: the core is the bound. It
took 1.2 ms a question and 17 µs a token where it shared two cores, and takes a third less where it has its own: 1,000
questions and 60,000 streamed tokens a second, 0.5 ms added. With one process 400 and 35,000.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import statistics
from typing import Any

import uvloop

from askers import Asked, ask_for
from asking import Connection
from cuelight.engine.language import Language
from cuelight.engine.weights import DEFAULT_MODEL, resolve
from saying_lane import saying
from serving import Serving

ADDED_MS, QUESTIONS_PER_S, TOKENS_PER_S, PAUSE_MS = 1.0, 500.0, 10_000.0, 10.0
NEW_TOKENS, STREAMED_TOKENS = 16, 256
CLIENTS, STREAMS = 16, 64
ROUND = 50
WARM_UP_S = 0.5


def main() -> None:
    """Print a line for each bar."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--seconds", type=float, default=15.0, help="how long clients ask, and streams go on")
    parser.add_argument("--rounds", type=int, default=10, help=f"turns of {ROUND} questions each for the added latency")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="whose text is said; only its tokenizer is needed")
    parser.add_argument("--front-ends", type=int, default=0, help="processes that speak HTTP; 0: the daemon itself")
    parser.add_argument("--clients", type=int, default=CLIENTS, help="that ask for whole answers")
    parser.add_argument("--streams", type=int, default=STREAMS, help="clients that have their answers streamed")
    parser.add_argument("--client-processes", type=int, default=1, help="that these clients share")
    options = parser.parse_args()
    with Serving("saying", options.model, options.front_ends) as serving:
        bench = Bench(serving, options.model, options.seconds, options.client_processes)
        bench.warm_up()
        bench.measure_latency(options.rounds)
        bench.measure_questions(options.clients)
        bench.measure_streams(options.streams)
        bench.measure_pauses()
    print(f"load {os.getloadavg()[0]:.1f}")


class Bench:
    """The measurements."""

    def __init__(self, serving: Serving, model: str, seconds: float, processes: int) -> None:
        self._serving = serving
        self._model = model
        self._seconds = seconds
        self._processes = processes
        self._language = Language(resolve(model))
        tokenizer = self._language.tokenizer
        self._text = {count: tokenizer.decode(saying(tokenizer, count)) for count in (NEW_TOKENS, STREAMED_TOKENS)}

    def warm_up(self) -> None:
        """Ask a little, for what is done at first only."""
        self._ask_for(WARM_UP_S, CLIENTS, self._question(NEW_TOKENS))
        self._serving.ask("longest_pause")

    def measure_latency(self, rounds: int) -> None:
        """What the daemon adds to what the driver takes."""
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            added_ms, driver_ms = runner.run(self._added_ms(rounds))
        driver = f"the driver alone takes {driver_ms:.2f} ms"
        _report("added to a question's latency", added_ms, ADDED_MS, "ms", at_most=True, more=driver)

    def measure_questions(self, clients: int) -> None:
        """Answers in one piece."""
        asked, shares = self._ask_for(self._seconds, clients, self._question(NEW_TOKENS))
        count = len(asked.latencies_s)
        _report("questions a second", count / asked.took_s, QUESTIONS_PER_S, "", more=_percentiles(asked))
        _tell("processor time a question", shares, count, 1e3, "ms")

    def measure_streams(self, streams: int) -> None:
        """Answers as they grow."""
        question = self._question(STREAMED_TOKENS) | {"stream": True, "stream_options": {"include_usage": True}}
        asked, shares = self._ask_for(self._seconds, streams, question)
        count = len(asked.latencies_s)
        tokens = count * STREAMED_TOKENS
        more = f"{count} streams, {tokens / asked.events:.2f} tokens an event, none lost"
        _report("streamed tokens a second", tokens / asked.took_s, TOKENS_PER_S, "", more=more)
        _tell("processor time a token", shares, tokens, 1e6, "µs")

    def measure_pauses(self) -> None:
        """Of the garbage collector of the process that has the device, in all of it."""
        own, whole = (1000 * pause_s for pause_s in self._serving.ask("longest_pause"))
        more = f"{whole:.2f} ms where it waited for a core"
        _report("garbage collector's longest pause", own, PAUSE_MS, "ms", at_most=True, more=more)

    def _ask_for(self, seconds: float, clients: int, question: dict[str, Any]) -> tuple[Asked, dict[str, float]]:
        """What clients got, and seconds of processor time by who took it."""
        before = self._serving.ask("processor_times")
        text = self._text[question["max_tokens"]]
        serving = self._serving
        asked = ask_for(serving.host, serving.port, seconds, clients, self._processes, question, text)
        after = self._serving.ask("processor_times")
        return asked, {who: after[who] - before[who] for who in before} | {"clients": asked.processor_s}

    async def _added_ms(self, rounds: int) -> tuple[float, float]:
        connection = await Connection.open(self._serving.host, self._serving.port)
        with_daemon: list[float] = []
        without: list[float] = []
        cues = itertools.count()
        for _ in range(rounds):
            questions = [self._question(NEW_TOKENS, next(cues)) for _ in range(2 * ROUND)]
            prompts = [self._language.encode(question["messages"]) for question in questions[:ROUND]]
            without += self._serving.ask("driver_latency", prompts, NEW_TOKENS)
            for question in questions[ROUND:]:
                reply = await connection.ask(question)
                with_daemon.append(reply.ended - reply.asked)
        connection.close()
        driver_s = statistics.median(without)
        return 1000 * (statistics.median(with_daemon) - driver_s), 1000 * driver_s

    def _question(self, new_tokens: int, cue: int = 0) -> dict[str, Any]:
        messages = [{"role": "user", "content": f"What does cue light {cue} tell the crew?"}]
        return {"model": self._model, "messages": messages, "max_tokens": new_tokens, "temperature": 0}


def _percentiles(asked: Asked) -> str:
    took_ms = sorted(1000 * latency_s for latency_s in asked.latencies_s)
    return f"median {statistics.median(took_ms):.1f} ms, p99 {took_ms[int(0.99 * len(took_ms))]:.1f} ms"


def _tell(what: str, shares: dict[str, float], count: int, scale: float, unit: str) -> None:
    told = ", ".join(f"{who} {scale * seconds / count:.2f}" for who, seconds in shares.items())
    print(f"    {what}, in {unit}: {told}", flush=True)


def _report(what: str, value: float, bar: float, unit: str, *, at_most: bool = False, more: str = "") -> None:
    held = value <= bar if at_most else value >= bar
    print(
        f"{what:36}{value:>10,.2f} {unit:3} bar {'≤' if at_most else '≥'} {bar:>8,g}: {'held' if held else 'MISSED'}"
        f"{'   ' + more if more else ''}",
        flush=True,
    )


if __name__ == "__main__":
    main()
