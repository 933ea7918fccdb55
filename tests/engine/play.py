"""Plays a scheduler by hand: requests join a lane, prefill in chunks, decode together and leave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cuelight.engine.config import blocks_for
from cuelight.engine.gumbel import gumbel, words
from cuelight.engine.model import Llama
from cuelight.errors import SegmentError
from cuelight.filters import NO_FILTERS, Filters
from cuelight.lanes.cpu_executor import CpuExecutor
from cuelight.lanes.types import Entry, LaneToken, PassRecord, SlotRecord, TokenStatus

TIE = 1e-4
"""Closer than this, rounding may decide which of two tokens is chosen."""


class WatchedLlama(Llama):
    """A Llama that keeps the logits of every row that was sampled."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.seen: list[torch.Tensor] = []

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        logits = super().logits(hidden)
        self.seen.extend(logits.clone())
        return logits


@dataclass(slots=True)
class Part:
    """A request in a play, and what became of it."""

    prompt: Sequence[int]
    limit: int
    arrival: int = 0
    chunks: Sequence[int] = (256,)
    temperature: float = 0.0
    seed: int = 0
    ignore_eos: bool = True
    filters: Filters = NO_FILTERS
    tokens: list[LaneToken] = field(default_factory=list)
    logits: list[torch.Tensor] = field(default_factory=list)

    @property
    def ids(self) -> list[int]:
        return [token.token for token in self.tokens]


def play(model: WatchedLlama, parts: Sequence[Part], *, stages: int, blocks: int = 64, seats: int = 16) -> int:
    """Run all parts to their end on a lane of their own; returns the number of passes."""
    executor = CpuExecutor(model, blocks, stages)
    free_blocks = list(range(blocks))[::-1]
    free_seats = list(range(seats))
    records: dict[int, SlotRecord] = {}
    prefilling: dict[int, tuple[Part, int, Iterator[int]]] = {}
    decoding: dict[int, Part] = {}
    waiting = sorted(range(len(parts)), key=lambda index: parts[index].arrival)
    passes = 0
    while waiting or prefilling or decoding:
        while waiting and parts[waiting[0]].arrival <= passes and free_seats:
            slot = waiting[0]
            part = parts[slot]
            needed = blocks_for(model.config, len(part.prompt) + part.limit)
            if needed > len(free_blocks):
                break
            waiting.pop(0)
            table = np.array([free_blocks.pop() for _ in range(needed)], np.int32)
            seat = free_seats.pop(0)
            records[slot] = SlotRecord(
                1 << 16 | slot,
                np.array(part.prompt, np.int32),
                part.limit,
                table,
                part.temperature,
                part.seed,
                part.ignore_eos,
                part.filters,
            )
            prefilling[seat] = (part, 0, _endless(part.chunks))
        entries = []
        for seat, (part, start, sizes) in prefilling.items():
            slot = next(index for index, other in enumerate(parts) if other is part)
            rows = min(next(sizes), len(part.prompt) - start)
            last = start + rows == len(part.prompt)
            entries.append(Entry(1 << 16 | slot, slot, seat, start, rows, start == 0, start == 0, last))
        record = PassRecord(tuple(sorted(decoding)), tuple(entries))
        passes += 1
        if not record.decode and not record.entries:
            continue
        model.seen.clear()
        finished: list[int] = []
        tokens: list[LaneToken] = []
        for stage in range(1 if any(entry.bind for entry in entries) else 2, stages):
            result = executor.execute(stage, 0, record, records.__getitem__, no_mask)
            tokens.extend(result.tokens)
            finished.extend(result.finished)
        for token, logits in zip(tokens, model.seen, strict=True):
            part = parts[token.request_id & 0xFFFF]
            assert token.finish != TokenStatus.LANE_ERROR
            assert token.position == len(part.prompt) + len(part.tokens)
            part.tokens.append(token)
            part.logits.append(logits)
        for entry in entries:
            part, start, sizes = prefilling.pop(entry.seat)
            if entry.last:
                decoding[entry.seat] = part
            else:
                prefilling[entry.seat] = (part, start + entry.rows, sizes)
        for seat in finished:
            part = decoding.pop(seat)
            slot = next(index for index, other in enumerate(parts) if other is part)
            free_blocks.extend(records.pop(slot).block_table.tolist())
            free_seats.append(seat)
    return passes


def no_mask(slot: int, position: int) -> NDArray[np.uint32]:
    """What a lane finds where nobody writes masks."""
    raise SegmentError(f"Slot {slot} has no mask for position {position}.")


def assert_same(part: Part, alone: Part) -> list[str]:
    """Check that a request went as it does alone; returns a sentence for each place where rounding decided."""
    for place, (token, other) in enumerate(zip(part.ids, alone.ids, strict=True)):
        if token != other:
            apart = _margin(alone, place)
            assert apart < TIE, f"token {place} is {token}, alone {other}, {apart} from being chosen otherwise"
            return [f"token {place}: {token} for {other}, {apart:.1e} from being chosen otherwise"]
        torch.testing.assert_close(part.logits[place], alone.logits[place], rtol=0, atol=1e-3)
    return []


def _margin(part: Part, place: int) -> float:
    scores = part.logits[place].double()
    if part.temperature:
        random = words(part.seed, part.tokens[place].position, len(scores))
        scores = scores / part.temperature + torch.from_numpy(gumbel(random))
    best = scores.topk(2).values
    return float(best[0] - best[1])


def _endless(sizes: Sequence[int]) -> Iterator[int]:
    yield from sizes
    while True:
        yield sizes[-1]
