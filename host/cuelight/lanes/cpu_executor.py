"""Runs the stages of passes on the CPU: what a lane does between a dispatch and its completion."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from cuelight.engine.batch import Batch, Span
from cuelight.engine.cache import KvCache
from cuelight.engine.config import blocks_for, layer_ranges
from cuelight.engine.model import Llama
from cuelight.engine.sampling import Choice, likeliest, sample
from cuelight.errors import CuelightError, InvalidArgument, LaneError
from cuelight.filters import check_top_logprobs
from cuelight.lanes.faults import LaneFault
from cuelight.lanes.types import Entry, LaneToken, PassRecord, SlotRecord, TokenStatus

__all__ = ["CpuExecutor", "StageResult"]

_KV_INIT, _FIRST_LAYER = 1, 2


class StageResult(NamedTuple):
    """What a stage gave.

    Parameters
    ----------
    tokens
        To be posted before the completion.
    finished
        Seats whose requests have ended.
    """

    tokens: tuple[LaneToken, ...]
    finished: tuple[int, ...]


@dataclass(slots=True)
class Tenant:
    """A request the lane has taken in; `token` is its latest, at `position`, not yet run through the model.

    `over` once that was its last. `text` holds all its tokens where penalties need them, shape (prompt + limit,),
    int32; nothing otherwise.
    """

    record: SlotRecord
    text: NDArray[np.int32]
    token: int = 0
    position: int = 0
    over: bool = False

    @classmethod
    def of(cls, record: SlotRecord) -> Tenant:
        """Take a request in."""
        rows = len(record.prompt)
        text = np.empty(rows + record.limit if record.filters.penalizes else 0, np.int32)
        text[:rows] = record.prompt[: len(text)]
        return cls(record, text)

    def choice(self, position: int, allowed: NDArray[np.bool_] | None) -> Choice:
        """How its token at `position` is chosen."""
        record = self.record
        prompt = len(record.prompt) - record.produced
        return Choice(record.temperature, record.seed, position, record.filters, self.text[:position], prompt, allowed)

    def accept(self, token: int, position: int) -> None:
        """Note the token that was chosen."""
        self.token, self.position = token, position
        self.text[position : position + 1] = token


class Row(NamedTuple):
    """The last row of a span that samples."""

    seat: int
    tenant: Tenant
    span: int
    position: int


@dataclass(slots=True)
class Pass:
    """A pass on its way through the stages."""

    batch: Batch | None
    hidden: torch.Tensor | None
    rows: list[Row]
    result: StageResult | None = None


class CpuExecutor:
    """Runs stages in the order of a lane's dispatches; state is kept by slot, a map leads from seats to slots.

    Running all stages of a pass again gives the same as running them once, up to its output decode.

    Parameters
    ----------
    model
        The model.
    blocks
        KV blocks of the lane.
    stages
        Stages of the model as the device counts them.

    Raises
    ------
    InvalidArgument
        The model can't be run in so many stages.
    """

    def __init__(self, model: Llama, blocks: int, stages: int) -> None:
        self._model = model
        self._cache = KvCache(model.config, blocks, model.dtype)
        self._layers = layer_ranges(model.config, stages)
        self._output = stages - 1
        self._tenants: dict[int, Tenant] = {}
        self._slots: dict[int, int] = {}
        self._passes: dict[int, Pass] = {}

    def execute(
        self,
        stage: int,
        buffer: int,
        record: PassRecord,
        slot_record_of: Callable[[int], SlotRecord],
        mask_of: Callable[[int, int], NDArray[np.uint32]],
    ) -> StageResult:
        """Run one stage of the pass that `record` describes; stages of several passes may take turns.

        Parameters
        ----------
        stage
            1 takes in newly seated requests, 2 begins the pass, the last one samples.
        buffer
            Record buffer of the pass: no two that are alive have the same.
        record
            The same in all stages of a pass.
        slot_record_of
            Gives a slot's record, or raises a `CuelightError`.
        mask_of
            Gives a slot's mask for a position, or raises a `CuelightError`.

        Raises
        ------
        LaneError
            The device counts other stages than this lane.
        """
        if stage == _KV_INIT:
            return self._take_in(record, slot_record_of)
        if not _FIRST_LAYER <= stage <= self._output:
            raise LaneError(f"The lane has stages 1 to {self._output}, not {stage}; configure the device alike.")
        result = StageResult((), ())
        if stage == _FIRST_LAYER:
            self._passes[buffer], result = self._begin(record)
        running = self._passes.setdefault(buffer, Pass(None, None, []))
        if stage == self._output:
            return self._sample(running, mask_of)
        if running.batch is not None and running.hidden is not None:
            layers = self._layers[stage - _FIRST_LAYER]
            running.hidden = self._model.run_layers(running.hidden, layers, running.batch, self._cache)
        return result

    def _take_in(self, record: PassRecord, slot_record_of: Callable[[int], SlotRecord]) -> StageResult:
        tokens, finished = [], []
        for entry in record.entries:
            if not entry.bind:
                continue
            self._slots[entry.seat] = entry.slot
            known = self._tenants.get(entry.slot)
            if known is not None and known.record.request_id == entry.request_id and not entry.first:
                continue
            self._tenants.pop(entry.slot, None)
            taken = self._read(entry, slot_record_of)
            if isinstance(taken, LaneFault):
                tokens.append(_failure(entry.request_id, taken))
                finished.append(entry.seat)
            else:
                self._tenants[entry.slot] = Tenant.of(taken)
        return StageResult(tuple(tokens), tuple(finished))

    def _read(self, entry: Entry, slot_record_of: Callable[[int], SlotRecord]) -> SlotRecord | LaneFault:
        try:
            slot_record = slot_record_of(entry.slot)
        except CuelightError:
            return LaneFault.RECORD_MISMATCH
        if slot_record.request_id != entry.request_id:
            return LaneFault.RECORD_MISMATCH
        return self._fault_in(slot_record) or slot_record

    def _fault_in(self, record: SlotRecord) -> LaneFault | None:
        config = self._model.config
        # The last new token is never run through the model.
        positions = len(record.prompt) + record.limit - 1
        needed = blocks_for(config, positions)
        table = record.block_table[:needed]
        if not len(record.prompt) or record.limit < 1 or positions > config.context:
            return LaneFault.TOO_LONG
        if len(table) < needed or table.min() < 0 or table.max() >= self._cache.blocks:
            return LaneFault.KV_BLOCKS
        if record.prompt.min() < 0 or record.prompt.max() >= config.vocabulary:
            return LaneFault.UNKNOWN_TOKEN
        return None if _samples_well(record, config.vocabulary) else LaneFault.BAD_SAMPLING

    def _begin(self, record: PassRecord) -> tuple[Pass, StageResult]:
        tokens, finished = [], []
        spans: list[Span] = []
        rows: list[Row] = []
        for seat in record.decode:
            tenant = self._tenants.get(self._slots.get(seat, -1))
            # A prompt's last chunk makes the first token, so only a request that was never taken in has none. Where
            # one that is over has rows, the report that it is was lost.
            if tenant is None or tenant.over or tenant.position < len(tenant.record.prompt):
                finished.append(seat)
                continue
            rows.append(Row(seat, tenant, len(spans), tenant.position + 1))
            spans.append(Span(np.array([tenant.token], np.int32), tenant.position, tenant.record.block_table))
        for entry in record.entries:
            tenant = self._tenants.get(entry.slot)
            if not entry.rows:
                continue
            if tenant is None or tenant.record.request_id != entry.request_id:
                # Whoever bound in this pass and was refused has been reported then.
                if not entry.bind:
                    tokens.append(_failure(entry.request_id, LaneFault.BAD_CHUNK))
                    finished.append(entry.seat)
                continue
            end = entry.start + entry.rows
            if end > len(tenant.record.prompt) or (entry.last and end != len(tenant.record.prompt)):
                tokens.append(_failure(entry.request_id, LaneFault.BAD_CHUNK))
                finished.append(entry.seat)
                continue
            if entry.last:
                rows.append(Row(entry.seat, tenant, len(spans), end))
            spans.append(Span(tenant.record.prompt[entry.start : end], entry.start, tenant.record.block_table))
        batch = Batch(spans, self._model.config) if spans else None
        begun = Pass(batch, None if batch is None else self._model.embed(batch), rows)
        return begun, StageResult(tuple(tokens), tuple(finished))

    def _sample(self, running: Pass, mask_of: Callable[[int, int], NDArray[np.uint32]]) -> StageResult:
        if running.result is None:
            running.result = self._choose(running, mask_of)
        return running.result

    def _choose(self, running: Pass, mask_of: Callable[[int, int], NDArray[np.uint32]]) -> StageResult:
        tokens, finished = [], []
        rows, choices = [], []
        for row in running.rows:
            try:
                choices.append(row.tenant.choice(row.position, self._allowed(row, mask_of)))
                rows.append(row)
            except CuelightError:
                tokens.append(_failure(row.tenant.record.request_id, LaneFault.NO_MASK))
                row.tenant.over = True
                finished.append(row.seat)
        if running.batch is None or running.hidden is None or not rows:
            return StageResult(tuple(tokens), tuple(finished))
        hidden = running.hidden[[running.batch.last_rows[row.span] for row in rows]]
        logits = self._model.logits(hidden)
        chosen, logprobs = sample(logits, choices)
        alternatives = _alternatives(logits, rows)
        for row, token, logprob in zip(rows, chosen, logprobs, strict=True):
            request_id = row.tenant.record.request_id
            if not math.isfinite(logprob):
                tokens.append(_failure(request_id, LaneFault.NOT_A_NUMBER))
                row.tenant.over = True
                finished.append(row.seat)
                continue
            status = self._status(row, token)
            row.tenant.accept(token, row.position)
            tokens.extend(alternatives.get(row.seat, ()))
            tokens.append(LaneToken(request_id, row.position, token, logprob, status))
            if status is not TokenStatus.MORE:
                row.tenant.over = True
                finished.append(row.seat)
        return StageResult(tuple(tokens), tuple(finished))

    def _allowed(self, row: Row, mask_of: Callable[[int, int], NDArray[np.uint32]]) -> NDArray[np.bool_] | None:
        record = row.tenant.record
        if not record.masked:
            return None
        words = mask_of(record.request_id & 0xFFFF, row.position).astype("<u4", copy=False)
        bits = np.unpackbits(words.view(np.uint8), count=self._model.config.vocabulary, bitorder="little")
        if not bits.any():
            raise LaneError(f"The mask for position {row.position} allows no token; let it allow one.")
        return bits.view(np.bool_)

    def _status(self, row: Row, token: int) -> TokenStatus:
        record = row.tenant.record
        if token in self._model.config.eos_ids and not record.ignore_eos:
            return TokenStatus.END_OF_TEXT
        if row.position - len(record.prompt) + 1 >= record.limit:
            return TokenStatus.LENGTH
        return TokenStatus.MORE


def _samples_well(record: SlotRecord, vocabulary: int) -> bool:
    try:
        record.filters.check()
        check_top_logprobs(record.top_logprobs)
    except InvalidArgument:
        return False
    known = all(token < vocabulary for token, _ in record.filters.logit_bias)
    return known and 0 <= record.temperature < math.inf and record.produced < len(record.prompt)


def _alternatives(logits: torch.Tensor, rows: list[Row]) -> dict[int, list[LaneToken]]:
    """Likeliest tokens by seat, where they were asked for."""
    asking = [(place, row) for place, row in enumerate(rows) if row.tenant.record.top_logprobs]
    if not asking:
        return {}
    most = max(row.tenant.record.top_logprobs for _, row in asking)
    found = likeliest(logits[[place for place, _ in asking]], most)
    return {
        row.seat: [
            LaneToken(row.tenant.record.request_id, row.position, token, logprob, TokenStatus.ALTERNATIVE)
            for token, logprob in top[: row.tenant.record.top_logprobs]
        ]
        for (_, row), top in zip(asking, found, strict=True)
    }


def _failure(request_id: int, fault: LaneFault) -> LaneToken:
    return LaneToken(request_id, 0, fault, 0.0, TokenStatus.LANE_ERROR)
