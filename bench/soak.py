"""Many streams at once, some of which hang up, while the lane is killed: all others must end as if they were alone.

Clients ask the same few questions again and again, in all tiers, greedy ones and such that draw their tokens. Every
question is asked alone first. Then the streams go on for a while; some hang up at a random moment, and the lane's
process gets SIGKILL. Each stream that was not cut must have the text that it had alone, and what they held must be
given back: slots, seats, KV blocks, file descriptors, threads and memory.

Predicted before the first run, for two cores: 64 streams of the default model have 100 tokens/s together, so some 300
streams end in two minutes, and a third as many are cut. No token comes for 3 s after a lane's death, 5 s at most.
Memory grows by less than 16 MiB.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import uvloop

from asking import Connection, Cut, Reply, text_of
from cuelight.engine.weights import DEFAULT_MODEL
from serving import Serving

__all__ = ["Outcome", "Soak"]

BACK_S, MEMORY_MIB = 5.0, 16.0
TIERS = ("vip", "standard", "best-effort")
TOPICS = ("a cue light", "a prompt book", "a follow spot", "a fly loft", "the stage manager", "the iron curtain")
CUT_SHARE = 0.25
LONGEST_STAY_S = 4.0
STREAM_S = 300.0
REST_S = 30.0


@dataclass
class Outcome:
    """What became of streams."""

    ended: int = 0
    cut: int = 0
    wrong: list[str] = field(default_factory=list)
    """What was said instead of the right text."""
    back_s: list[float] = field(default_factory=list)
    """How long after each kill of the lane the next token came."""
    before: Mapping[str, float] = field(default_factory=dict)
    after: Mapping[str, float] = field(default_factory=dict)
    """What was held before the streams, and at the end."""

    @property
    def given_back(self) -> bool:
        """Whether as little is held as before."""
        return all(self.after[name] <= value for name, value in self.before.items() if name != "MiB")


class Soak:
    """Streams of a daemon.

    Parameters
    ----------
    host, port : str, int
        Where it listens.
    model : str
        What it serves.
    lane_pids, holdings : callable
        Those of `serving.Told`.
    seed : int
        Of everything that is random.
    longest_stay_s : float
        How long those stay at most who hang up.
    """

    def __init__(
        self,
        host: str,
        port: int,
        model: str,
        lane_pids: Callable[[], list[int]],
        holdings: Callable[[], Mapping[str, float]],
        seed: int = 1,
        longest_stay_s: float = LONGEST_STAY_S,
    ) -> None:
        self._where = host, port
        self._lane_pids = lane_pids
        self._holdings = holdings
        self._random = Random(seed)
        self._longest_stay_s = longest_stay_s
        self._questions = [
            {
                "model": model,
                "messages": [{"role": "user", "content": f"{'Please, w' if polite else 'W'}hat is {topic} for?"}],
                "max_tokens": self._random.randrange(8, 64),
                "temperature": temperature,
                "seed": number,
                "stream": True,
            }
            for number, (topic, polite, temperature) in enumerate(itertools.product(TOPICS, (False, True), (0.0, 0.8)))
        ]
        self._alone: list[str] = []
        self._last_news = 0.0
        self._outcome = Outcome()

    async def run(self, streams: int, seconds: float, kills: int) -> Outcome:
        """Ask all questions alone, then keep `streams` going for so long, with so many kills of the lane between."""
        self._alone = [_text(await self._ask_alone(question)) for question in self._questions]
        await self._stream(streams, seconds / 8)
        self._outcome = Outcome(before=await self._at_rest())
        async with asyncio.TaskGroup() as group:
            group.create_task(self._stream(streams, seconds))
            for kill in range(kills):
                group.create_task(self._kill(seconds * (kill + 1) / (kills + 1)))
        self._outcome.after = await self._at_rest()
        return self._outcome

    async def _ask_alone(self, question: Mapping[str, Any]) -> Reply:
        connection = await Connection.open(*self._where)
        async with asyncio.timeout(STREAM_S):
            reply = await connection.ask(question)
        connection.close()
        return reply

    async def _stream(self, streams: int, seconds: float) -> None:
        until = time.perf_counter() + seconds
        async with asyncio.TaskGroup() as group:
            for _ in range(streams):
                group.create_task(self._ask_until(until))

    async def _ask_until(self, until: float) -> None:
        while time.perf_counter() < until:
            number = self._random.randrange(len(self._questions))
            question = self._questions[number] | {"tier": self._random.choice(TIERS)}
            connection = await Connection.open(*self._where)
            stay_s = self._random.uniform(0, self._longest_stay_s) if self._random.random() < CUT_SHARE else STREAM_S
            hang_up = asyncio.get_running_loop().call_later(stay_s, connection.close)
            try:
                text = _text(await connection.ask(question, on_part=self._note_news))
            except Cut:
                if stay_s < STREAM_S:
                    self._outcome.cut += 1
                else:
                    self._outcome.wrong.append(f"nothing more for {question}")
            except ValueError as error:
                self._outcome.wrong.append(str(error))
            else:
                self._outcome.ended += 1
                if text != self._alone[number]:
                    self._outcome.wrong.append(f"{text!r} instead of {self._alone[number]!r}")
            finally:
                hang_up.cancel()
                connection.close()

    def _note_news(self, reply: Reply) -> None:
        self._last_news = time.perf_counter()

    async def _kill(self, after_s: float) -> None:
        await asyncio.sleep(after_s)
        for pid in self._lane_pids():
            os.kill(pid, signal.SIGKILL)
        killed = time.perf_counter()
        # What the lane said before is still under way for a moment.
        await asyncio.sleep(0.1)
        said = self._last_news
        async with asyncio.timeout(STREAM_S):
            while self._last_news == said:
                await asyncio.sleep(0.01)
        self._outcome.back_s.append(self._last_news - killed)

    async def _at_rest(self) -> Mapping[str, float]:
        """What is held once nothing changes any more."""
        until = time.perf_counter() + REST_S
        held = self._holdings()
        while time.perf_counter() < until:
            await asyncio.sleep(1.0)
            before, held = held, self._holdings()
            if not held["requests"] and all(held[name] == before[name] for name in held if name != "MiB"):
                break
        return held


def main() -> None:
    """Print what became of the streams, and what is held before and after."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--front-ends", type=int, default=0, help="processes that speak HTTP; 0: the daemon itself")
    options = parser.parse_args()
    with (
        Serving("cpu", front_ends=options.front_ends) as serving,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        soak = Soak(
            serving.host,
            serving.port,
            DEFAULT_MODEL,
            lambda: serving.ask("lane_pids"),
            lambda: serving.ask("holdings"),
            options.seed,
        )
        outcome = runner.run(soak.run(options.streams, options.seconds, options.kills))
    raise SystemExit(0 if report(outcome) else 1)


def report(outcome: Outcome) -> bool:
    """Print it, and say whether all is well."""
    grown_mib = outcome.after["MiB"] - outcome.before["MiB"]
    print(f"{outcome.ended} streams ended, {outcome.cut} were cut, {len(outcome.wrong)} are wrong")
    for wrong in outcome.wrong[:10]:
        print(f"  {wrong}")
    print(f"first token after each kill: {', '.join(f'{back_s:.1f} s' for back_s in outcome.back_s)}; bar {BACK_S:g} s")
    print(f"{'':20}{'before':>10}{'after':>10}")
    for name, before in outcome.before.items():
        print(f"{name:20}{before:10.0f}{outcome.after[name]:10.0f}")
    well = (
        not outcome.wrong
        and outcome.given_back
        and grown_mib <= MEMORY_MIB
        and all(back_s <= BACK_S for back_s in outcome.back_s)
    )
    print(f"{'all is well' if well else 'NOT WELL'}; load {os.getloadavg()[0]:.1f}")
    return well


def _text(reply: Reply) -> str:
    return "".join(map(text_of, reply.events))


if __name__ == "__main__":
    main()
