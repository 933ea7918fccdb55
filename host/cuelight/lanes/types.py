"""What passes between the device, the host and a lane, as plain values."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cuelight.filters import NO_FILTERS, Filters

__all__ = ["Dispatch", "Entry", "LaneToken", "PassRecord", "SlotRecord", "TokenStatus"]


@dataclass(frozen=True, slots=True)
class Dispatch:
    """An order to a lane: run this stage of this pass.

    Parameters
    ----------
    sequence
        Number of the dispatch on its lane, 32 bits.
    stage
        Stage of the model.
    buffer
        Record buffer of the pass.
    first, last
        First and last dispatch of the pass.
    samples
        Some row of the pass samples.
    rows
        Rows of the pass: its decode rows and the rows of its entries.
    pass_number
        Number of the pass in its lane group, from 1.
    entries
        Entries in the pass record.
    """

    sequence: int
    stage: int
    buffer: int
    first: bool
    last: bool
    samples: bool
    rows: int
    pass_number: int
    entries: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A chunk of prompt rows in a pass, or a request that is new in its seat.

    Parameters
    ----------
    request_id
        Epoch << 16 | slot.
    slot, seat
        The request's slot on the device and its seat in the running set.
    start, rows
        Position of the chunk's first row and its length.
    bind
        The lane takes the slot's record in.
    first, last
        First and last chunk of the prompt; the last row of the last chunk samples.
    """

    request_id: int
    slot: int
    seat: int
    start: int
    rows: int
    bind: bool
    first: bool
    last: bool


@dataclass(frozen=True, slots=True)
class PassRecord:
    """Who takes part in a pass: decoding seats in ascending order, and the entries in the device's order."""

    decode: tuple[int, ...]
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SlotRecord:
    """What a lane must know of a request before its first stage.

    Parameters
    ----------
    request_id
        Epoch << 16 | slot.
    prompt
        Token ids, shape (prompt,), int32.
    limit
        New tokens at most.
    block_table
        KV blocks in order of position, shape (blocks,), int32.
    temperature
        0 is greedy.
    seed
        64 bits; random numbers are keyed by (seed, position).
    ignore_eos
        Go on after end of text.
    filters
        What shapes the choice of tokens beyond temperature.
    top_logprobs
        Likeliest tokens to report with each token.
    produced
        How many of the prompt's last tokens the model made before; to penalties they are text.
    masked
        Each token is chosen among those that the slot's mask allows at its position.
    """

    request_id: int
    prompt: NDArray[np.int32]
    limit: int
    block_table: NDArray[np.int32]
    temperature: float = 0.0
    seed: int = 0
    ignore_eos: bool = False
    filters: Filters = NO_FILTERS
    top_logprobs: int = 0
    produced: int = 0
    masked: bool = False


class TokenStatus(enum.IntEnum):
    """What a lane says with a token."""

    MORE = 0
    END_OF_TEXT = 1
    LENGTH = 2
    LANE_ERROR = 3
    """The token is an error code."""
    ALTERNATIVE = 4
    """One of the likeliest tokens at a position; the token chosen there follows."""


class LaneToken(NamedTuple):
    """A token as a lane posts it.

    Parameters
    ----------
    request_id
        Epoch << 16 | slot.
    position
        Counted from the start of the prompt.
    token
        Token id, or the error code of a lane error.
    logprob
        Natural logarithm of the model's own probability, before temperature.
    finish
        A `TokenStatus`; a lane that writes garbage can make it any byte.
    """

    request_id: int
    position: int
    token: int
    logprob: float
    finish: int
