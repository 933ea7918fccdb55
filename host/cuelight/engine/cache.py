"""The KV cache: layer x head group x position block, reached through a request's block table."""

from __future__ import annotations

import numpy as np
import torch

from cuelight.engine.config import ModelConfig, block_positions, head_group

__all__ = ["KvCache"]


class KvCache:
    """Keys and values of all requests of a lane.

    A slice (one layer, keys or values, one head group, one block) is contiguous: heads x positions x head_dim.

    Parameters
    ----------
    config
        The model's shape.
    blocks
        Position blocks; memory is committed when a block is first written.
    dtype
        float32 or bfloat16.
    """

    def __init__(self, config: ModelConfig, blocks: int, dtype: torch.dtype = torch.float32) -> None:
        self.blocks = blocks
        self.positions = block_positions(config)
        self._heads = config.kv_heads
        group = head_group(config)
        shape = (config.layers, 2, config.kv_heads // group, blocks, group, self.positions, config.head_dim)
        # numpy asks the system for zero pages, torch would write them all; bfloat16 is unknown to it.
        zeros = np.zeros((*shape[:-1], shape[-1] * dtype.itemsize), np.uint8)
        slices = torch.from_numpy(zeros).view(dtype)
        self._rows = slices.permute(0, 3, 5, 1, 2, 4, 6)
        self._by_head = slices.permute(0, 1, 2, 4, 3, 5, 6)

    def write(self, layer: int, blocks: torch.Tensor, offsets: torch.Tensor, rows: torch.Tensor) -> None:
        """Store keys and values of some rows.

        Parameters
        ----------
        layer
            Index of the layer.
        blocks, offsets
            Block of each row and position within it, shape (rows,), int64.
        rows
            Keys, then values; shape (rows, 2 * kv_heads, head_dim).
        """
        target = self._rows[layer]
        target.index_put_((blocks, offsets), rows.view(-1, *target.shape[2:]))

    def read(self, layer: int, blocks: torch.Tensor | range, requests: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of requests that hold equally many blocks.

        Parameters
        ----------
        layer
            Index of the layer.
        blocks
            Their block tables one after the other, shape (requests * n,), int64; a range where they are consecutive.
        requests
            How many they are.

        Returns
        -------
        keys, values
            Shape (requests, kv_heads, n * positions, head_dim).
        """
        source = self._by_head[layer]
        if isinstance(blocks, range):
            # No copy for requests of one block each.
            gathered = source.narrow(3, blocks.start, len(blocks))
        else:
            gathered = source.index_select(3, blocks)
        keys, values = gathered.reshape(2, self._heads, requests, -1, source.shape[-1]).transpose(1, 2)
        return keys, values
