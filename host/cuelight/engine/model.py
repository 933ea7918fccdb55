"""Models of the Llama family, Qwen2 and Qwen3 included: embedding, layers and head over the rows of many requests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as functional

from cuelight.engine.batch import Batch, Peers
from cuelight.engine.cache import KvCache
from cuelight.engine.checkpoint import Checkpoint
from cuelight.engine.config import ModelConfig, load_config
from cuelight.engine.progress import Progress, silent

__all__ = ["Llama", "attend_peers"]

_SPLIT_ROWS = 64


class Projection:
    """A weight matrix that rows are multiplied by.

    BLAS runs products with few rows on one thread and so at one core's memory bandwidth. Those are split by output
    into one product a thread.

    Parameters
    ----------
    weight
        Shape (outputs, inputs).
    bias
        Added to each product, shape (outputs,).
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        self.weight = weight
        self._bias = bias
        self._parts: torch.Tensor | None = None
        threads = torch.get_num_threads()
        if threads > 1 and len(weight) % threads == 0:
            self._parts = weight.view(threads, -1, weight.shape[1]).transpose(1, 2)

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """Multiply `rows`, shape (rows, inputs); returns shape (rows, outputs)."""
        if self._parts is None or len(rows) > _SPLIT_ROWS:
            return functional.linear(rows, self.weight, self._bias)
        parts = torch.bmm(rows.expand(len(self._parts), *rows.shape), self._parts)
        product = parts.transpose(0, 1).flatten(1)
        return product if self._bias is None else product.add_(self._bias)


@dataclass(frozen=True, slots=True)
class Layer:
    """Weights of a transformer layer; q, k and v are one matrix, gate and up another.

    `head_norm` has a row for each head of q and k, shape (heads + kv_heads, head_dim), where the model has such norms.
    """

    attention_norm: torch.Tensor
    qkv: Projection
    head_norm: torch.Tensor | None
    output: Projection
    forward_norm: torch.Tensor
    gate_up: Projection
    down: Projection


class Llama:
    """A model whose parts run one stage at a time over a batch of rows.

    Rows are independent but for rounding: what else is in the batch moves results by about 1e-6 relative.

    Parameters
    ----------
    config
        The model's shape.
    embedding
        Shape (vocabulary, hidden).
    layers
        In order.
    norm
        Weights of the last norm, shape (hidden,).
    head
        Residual stream to logits.
    """

    def __init__(
        self, config: ModelConfig, embedding: torch.Tensor, layers: list[Layer], norm: torch.Tensor, head: Projection
    ) -> None:
        self.config = config
        self._embedding = embedding
        self._layers = layers
        self._norm = norm
        self._head = head

    @classmethod
    def load(cls, directory: Path, progress: Progress = silent, dtype: torch.dtype = torch.float32) -> Llama:
        """Load the model in `directory`, a Hugging Face layout, for the number of threads torch is set to.

        Parameters
        ----------
        directory
            The model's directory.
        progress
            Told how far it is.
        dtype
            Of weights, residual stream and KV cache, float32 or bfloat16; norms, rotation and logits are float32.

        Raises
        ------
        ModelFileError
            A file is missing, damaged or does not fit the configuration.
        UnsupportedModel
            The model is of another family.
        """
        config = load_config(directory)
        with torch.inference_mode(), Checkpoint(directory) as checkpoint:
            table = (config.vocabulary, config.hidden)
            embedding = checkpoint.read(dtype, ("model.embed_tokens.weight", table))
            layers = []
            for index in range(config.layers):
                progress("loading weights", index / config.layers)
                layers.append(_load_layer(checkpoint, config, f"model.layers.{index}", dtype))
            norm = checkpoint.read(dtype, ("model.norm.weight", (config.hidden,)))
            output = embedding if config.tied else checkpoint.read(dtype, ("lm_head.weight", table))
        progress("loading weights", 1.0)
        return cls(config, embedding, layers, norm, Projection(output))

    @property
    def dtype(self) -> torch.dtype:
        """Of weights, residual stream and KV cache."""
        return self._embedding.dtype

    @torch.inference_mode()
    def embed(self, batch: Batch) -> torch.Tensor:
        """Residual stream before the first layer, shape (rows, hidden)."""
        return functional.embedding(batch.tokens, self._embedding)

    @torch.inference_mode()
    def run_layers(self, hidden: torch.Tensor, layers: range, batch: Batch, cache: KvCache) -> torch.Tensor:
        """Take the residual stream through some layers, writing their keys and values.

        Parameters
        ----------
        hidden
            Shape (rows, hidden); left unchanged.
        layers
            Which layers.
        batch
            The rows.
        cache
            Holds everything before them.
        """
        for index in layers:
            layer = self._layers[index]
            qkv = layer.qkv(self._normalize(hidden, layer.attention_norm))
            hidden = hidden + layer.output(self._attend(qkv, layer.head_norm, index, batch, cache))
            gate, up = layer.gate_up(self._normalize(hidden, layer.forward_norm)).chunk(2, dim=1)
            hidden = hidden + layer.down(functional.silu(gate) * up)
        return hidden

    @torch.inference_mode()
    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits of rows that have passed all layers, shape (rows, vocabulary), float32."""
        logits: torch.Tensor = self._head(self._normalize(hidden, self._norm)).float()
        return logits

    def _normalize(self, rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        wide = rows.float()
        mean_square = torch.linalg.vector_norm(wide, dim=-1, keepdim=True).square_().div_(rows.shape[-1])
        normal = wide * mean_square.add_(self.config.norm_eps).rsqrt_()
        scaled: torch.Tensor = normal.to(rows.dtype).mul_(weight)
        return scaled

    def _attend(
        self, qkv: torch.Tensor, head_norm: torch.Tensor | None, layer: int, batch: Batch, cache: KvCache
    ) -> torch.Tensor:
        heads, kv_heads = self.config.heads, self.config.kv_heads
        head_dim = self.config.head_dim
        rows = qkv.view(len(qkv), heads + 2 * kv_heads, head_dim).float()
        turning = rows[:, : heads + kv_heads]
        if head_norm is not None:
            turning.copy_(self._normalize(turning, head_norm))
        torch.view_as_complex(turning.view(len(qkv), -1, head_dim // 2, 2)).mul_(batch.turns)
        rows = rows.to(qkv.dtype)
        cache.write(layer, batch.blocks, batch.offsets, rows[:, heads:])
        queries = rows[:, :heads].view(len(qkv), kv_heads, -1, head_dim)
        parts = [attend_peers(queries[peers.first : peers.last], layer, peers, cache) for peers in batch.peers]
        return parts[0] if len(parts) == 1 else torch.cat(parts)


def attend_peers(queries: torch.Tensor, layer: int, peers: Peers, cache: KvCache) -> torch.Tensor:
    """Attention of rows that are computed in one call, shape (rows, heads * head_dim).

    Parameters
    ----------
    queries
        Shape (rows, kv_heads, heads / kv_heads, head_dim).
    layer
        Index of the layer.
    peers
        The rows.
    cache
        Holds their keys and values, and those before them.
    """
    # Query heads that share a KV head are rows of one product with it: no key or value is repeated.
    keys, values = cache.read(layer, peers.blocks, peers.requests)
    keys, values = keys[:, :, : peers.length], values[:, :, : peers.length]
    single = peers.requests == len(queries)
    if not single:
        queries = queries.permute(2, 1, 0, 3)
        keys, values = (part.expand(len(queries), -1, -1, -1) for part in (keys, values))
    mask = None if peers.mask is None else peers.mask.to(queries.dtype)
    mixed = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
    return (mixed if single else mixed.permute(2, 1, 0, 3)).flatten(1)


def _load_layer(checkpoint: Checkpoint, config: ModelConfig, name: str, dtype: torch.dtype) -> Layer:
    query_rows, kv_rows = config.heads * config.head_dim, config.kv_heads * config.head_dim

    def vector(*parts: tuple[str, int]) -> torch.Tensor:
        return checkpoint.read(dtype, *((f"{name}.{part}", (rows,)) for part, rows in parts))

    def matrix(columns: int, *parts: tuple[str, int]) -> torch.Tensor:
        return checkpoint.read(dtype, *((f"{name}.{part}.weight", (rows, columns)) for part, rows in parts))

    projections = (("self_attn.q_proj", query_rows), ("self_attn.k_proj", kv_rows), ("self_attn.v_proj", kv_rows))
    qkv = matrix(config.hidden, *projections)
    _pair_rows(qkv[: query_rows + kv_rows], config.head_dim)
    bias = head_norm = None
    if config.qkv_bias:
        bias = vector(*((f"{part}.bias", rows) for part, rows in projections))
        _pair_rows(bias[: query_rows + kv_rows], config.head_dim)
    if config.qk_norm:
        norms = [vector((f"self_attn.{part}_norm.weight", config.head_dim)) for part in "qk"]
        for norm in norms:
            _pair_rows(norm, config.head_dim)
        head_norm = torch.stack([norms[0]] * config.heads + [norms[1]] * config.kv_heads)
    return Layer(
        attention_norm=vector(("input_layernorm.weight", config.hidden)),
        qkv=Projection(qkv, bias),
        head_norm=head_norm,
        output=Projection(matrix(query_rows, ("self_attn.o_proj", config.hidden))),
        forward_norm=vector(("post_attention_layernorm.weight", config.hidden)),
        gate_up=Projection(
            matrix(config.hidden, ("mlp.gate_proj", config.intermediate), ("mlp.up_proj", config.intermediate))
        ),
        down=Projection(matrix(config.intermediate, ("mlp.down_proj", config.hidden))),
    )


def _pair_rows(weight: torch.Tensor, head_dim: int) -> None:
    # Hugging Face rotates dimensions half a head apart. Neighbours make the rotation one complex product, and queries
    # and keys reordered alike have the same products.
    halves = weight.view(-1, 2, head_dim // 2, *weight.shape[1:])
    weight.copy_(halves.transpose(1, 2).reshape(weight.shape))
