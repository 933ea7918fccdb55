"""What all layers of a pass have in common: where each row stands, where its KV goes, what it attends to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from cuelight.engine.config import ModelConfig, block_positions

__all__ = ["Batch", "Peers", "Span"]


class Span(NamedTuple):
    """Consecutive rows of one request: a chunk of its prompt, or the one row of its decode step.

    Parameters
    ----------
    tokens
        Token ids, shape (rows,).
    start
        Position of the first of them.
    table
        KV blocks of the request in order of position, shape (blocks,).
    """

    tokens: NDArray[np.int32]
    start: int
    table: NDArray[np.int32]

    @property
    def end(self) -> int:
        """Position after its last row."""
        return self.start + len(self.tokens)


class Peers(NamedTuple):
    """Rows whose attention is computed in one call: single rows with equally many blocks, or one chunk.

    Parameters
    ----------
    first, last
        Their rows in the batch, `last` not included.
    requests
        Requests they belong to.
    blocks
        The requests' blocks that hold what they attend to, shape (requests * n,), int64; a range if consecutive.
    length
        Longest number of positions any of them attends to.
    mask
        Added to the scores; shape (requests, 1, 1, length) for single rows, (rows, length) for a chunk; None where
        every row attends to all `length` positions.
    """

    first: int
    last: int
    requests: int
    blocks: torch.Tensor | range
    length: int
    mask: torch.Tensor | None


class Batch:
    """The rows of a pass.

    Parameters
    ----------
    spans
        Rows of each request; rows are reordered so that peers stand together.
    config
        The model's shape.

    Attributes
    ----------
    tokens : Tensor
        Shape (rows,), int64.
    blocks, offsets : Tensor
        Where each row's keys and values go, shape (rows,), int64.
    turns : Tensor
        Rotation of each pair of dimensions, shape (rows, 1, head_dim / 2), complex64.
    peers : list of Peers
        All rows, in order.
    last_rows : list of int
        Row of the last token of each span, in the order of `spans`.
    """

    def __init__(self, spans: Sequence[Span], config: ModelConfig) -> None:
        block = block_positions(config)
        groups = _groups(spans, block)
        ordered = [spans[index] for members in groups for index in members]
        positions = np.concatenate([np.arange(span.start, span.end) for span in ordered])
        blocks = np.concatenate([span.table[np.arange(span.start, span.end) // block] for span in ordered])
        self.tokens = torch.from_numpy(np.concatenate([span.tokens for span in ordered]).astype(np.int64))
        self.blocks = torch.from_numpy(blocks.astype(np.int64))
        self.offsets = torch.from_numpy(positions % block)
        frequencies = torch.from_numpy(config.rope.frequencies(config.head_dim))
        angles = torch.outer(torch.from_numpy(positions.astype(np.float32)), frequencies)
        self.turns = torch.polar(torch.full_like(angles, config.rope.scale), angles).unsqueeze(1)
        self.peers: list[Peers] = []
        self.last_rows = [0] * len(spans)
        row = 0
        for members in groups:
            first = row
            for index in members:
                row += len(spans[index].tokens)
                self.last_rows[index] = row - 1
            tables = [spans[index].table[: -(-spans[index].end // block)] for index in members]
            lengths = positions[first:row] + 1
            self.peers.append(
                Peers(
                    first=first,
                    last=row,
                    requests=len(members),
                    blocks=_block_list(np.concatenate(tables)),
                    length=int(lengths.max()),
                    mask=_mask(lengths, single=len(members) == row - first),
                )
            )


def _groups(spans: Sequence[Span], block: int) -> list[list[int]]:
    singles: dict[int, list[int]] = {}
    chunks = []
    for index, span in enumerate(spans):
        if len(span.tokens) == 1:
            singles.setdefault(-(-span.end // block), []).append(index)
        else:
            chunks.append([index])
    for members in singles.values():
        # Neighbours in the cache are read without a copy.
        members.sort(key=lambda index: int(spans[index].table[0]))
    return [*singles.values(), *chunks]


def _block_list(blocks: NDArray[np.int32]) -> torch.Tensor | range:
    if bool((np.diff(blocks) == 1).all()):
        return range(int(blocks[0]), int(blocks[0]) + len(blocks))
    return torch.from_numpy(blocks.astype(np.int64))


def _mask(lengths: NDArray[np.int64], single: bool) -> torch.Tensor | None:
    longest = int(lengths.max())
    if int(lengths.min()) == longest:
        return None
    hidden = np.arange(longest)[None, :] >= lengths[:, None]
    mask = torch.from_numpy(np.where(hidden, np.float32(-np.inf), np.float32(0)))
    return mask[:, None, None, :] if single else mask
