"""A VIP's time to first token through the daemon: alone, beside best-effort streams, and at twice the load it carries.

The default model on the CPU lane, asked over HTTP by clients in another process. 32 best-effort clients ask again and
again; then, as overload, every seat is taken and best-effort questions come in at twice the pace at which the 32 had
their answers. VIPs come one at a time, at random moments. Conditions take turns, so that other load on the machine
meets all of them.

Predicted before the first run, for two cores with nothing else to do. Alone: 0.1 s for a pass of 36 rows, and 1 ms for
the daemon. Beside 32: a decode pass of 32 rows takes 0.2 s, but a VIP's pass need not wait for its end, only for two
stages, 30 ms each, and for its own pass beside it: p99 1.8 times that of an idle service. At twice the load 62 seats
decode instead of 32, stages take 40 ms each: 2 times.

With stages of five layers it was 1.67 and 2.11 times, with stages of three it is 1.29 and 1.56.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import math
import os
import statistics
from collections.abc import AsyncIterator, Sequence
from random import Random
from typing import Any

import uvloop

from asking import Connection, Reply
from cuelight.engine.weights import DEFAULT_MODEL
from serving import Serving

BAR = 2.0
STREAMS, SEATS = 32, 64
ALONE, BESIDE, OVERLOAD = "nobody", f"{STREAMS} best-effort", "twice the load"
CROWD_TOKENS = 64
VIP = "What does a cue light tell the crew?"
LONGEST_REST_S = 0.3
TIMEOUT_S = 120.0


def main() -> None:
    """Print a line for each condition."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--samples", type=int, default=140, help="VIPs in each condition")
    parser.add_argument("--rounds", type=int, default=2, help="turns that each condition takes")
    options = parser.parse_args()
    with Serving("cpu") as serving, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        bench = Bench(serving)
        firsts_ms = runner.run(bench.run(options.rounds, options.samples // options.rounds))
    report(firsts_ms)


class Bench:
    """The measurements."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._random = Random(1)
        self._numbers = itertools.count()
        self._answered = 0
        self._pace = 0.0
        """Best-effort answers a second that it can carry."""

    async def run(self, rounds: int, samples: int) -> dict[str, list[float]]:
        """Times to first token, in ms, by condition."""
        firsts_ms: dict[str, list[float]] = {ALONE: [], BESIDE: [], OVERLOAD: []}
        await self._first_ms()
        for _ in range(rounds):
            for condition, values in firsts_ms.items():
                async with self._crowd(condition):
                    begun, answered = asyncio.get_running_loop().time(), self._answered
                    for _ in range(samples):
                        await asyncio.sleep(self._random.uniform(0, LONGEST_REST_S))
                        values.append(await self._first_ms())
                    if condition == BESIDE:
                        self._pace = (self._answered - answered) / (asyncio.get_running_loop().time() - begun)
        return firsts_ms

    async def _first_ms(self) -> float:
        connection = await self._connect()
        async with asyncio.timeout(TIMEOUT_S):
            reply = await connection.ask(_question(VIP, 1, "vip"))
        connection.close()
        return 1000 * reply.first_text_s

    @contextlib.asynccontextmanager
    async def _crowd(self, condition: str) -> AsyncIterator[None]:
        """Best-effort clients, all at work."""
        clients: list[asyncio.Task[None]] = []
        at_work = asyncio.Semaphore(0)
        count = {ALONE: 0, BESIDE: STREAMS, OVERLOAD: SEATS}[condition]
        for _ in range(count):
            clients.append(asyncio.create_task(self._ask_on(at_work)))
        async with asyncio.timeout(TIMEOUT_S):
            # Some wait in line where there are more than seats.
            for _ in range(min(count, STREAMS)):
                await at_work.acquire()
        if condition == OVERLOAD:
            if not self._pace:
                raise SystemExit("No best-effort answer came to its end meanwhile; measure more VIPs in a turn.")
            clients.append(asyncio.create_task(self._ask_at_pace(2 * self._pace)))
        yield
        for client in clients:
            client.cancel()
        await asyncio.wait(clients or [asyncio.create_task(asyncio.sleep(0))])
        async with asyncio.timeout(TIMEOUT_S):
            while self._serving.ask("holdings")["requests"]:
                await asyncio.sleep(0.1)

    async def _ask_on(self, at_work: asyncio.Semaphore) -> None:
        """Ask again and again."""
        while True:
            await self._ask_one(at_work)

    async def _ask_at_pace(self, pace: float) -> None:
        """Ask so many questions a second, whatever becomes of them."""
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(self._ask_one(asyncio.Semaphore()))
                await asyncio.sleep(self._random.expovariate(pace))

    async def _ask_one(self, at_work: asyncio.Semaphore) -> None:
        def note(reply: Reply) -> None:
            if len(reply.parts) == 2:
                at_work.release()

        connection = await self._connect()
        try:
            number = next(self._numbers)
            reply = await connection.ask(
                _question(f"Tell me of the number {number}.", CROWD_TOKENS, "best-effort"), on_part=note
            )
            self._answered += reply.status == 200
        finally:
            connection.close()

    async def _connect(self) -> Connection:
        return await Connection.open(self._serving.host, self._serving.port)


def report(firsts_ms: dict[str, list[float]]) -> None:
    """Medians and p99 in ms, and the ratio of the p99s."""
    print(f"{'beside':20}{'median':>8}{'p99':>8}{'× idle':>8}")
    idle = quantile(firsts_ms[ALONE], 0.99)
    for condition, values in firsts_ms.items():
        p99 = quantile(values, 0.99)
        line = f"{condition:20}{statistics.median(values):8.0f}{p99:8.0f}{p99 / idle:8.2f}"
        if condition != ALONE:
            line += f"   bar {BAR:g}: {'held' if p99 <= BAR * idle else 'MISSED'}"
        print(line)
    print(f"all in ms, {len(firsts_ms[ALONE])} VIPs each; load {os.getloadavg()[0]:.1f}")


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of them do not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def _question(text: str, new_tokens: int, tier: str) -> dict[str, Any]:
    return {
        "model": DEFAULT_MODEL,
        "messages": [{"role": "user", "content": text}],
        "max_tokens": new_tokens,
        "temperature": 0,
        "stream": True,
        "tier": tier,
    }


if __name__ == "__main__":
    main()
