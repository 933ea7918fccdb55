"""Which kernel computes attention on the CPU lane: python -m cuelight.doctor.probes.attention prints one line of JSON.

The engine's own function is called as a lane would, and torch's profiler says what ran.
"""

from __future__ import annotations

import json
import sys

DECODING, CHUNK, CONTEXT = 2, 32, 100
PREFIX = "aten::_scaled_dot_product_"


def main() -> int:
    """Run attention of each kind of row in each type; the exit status is 1 without torch."""
    try:
        import torch
    except ImportError:
        return 1
    from cuelight.engine.config import DTYPES

    kernels = {name: dict(zip(("decode", "prefill"), _kernels(name), strict=True)) for name in DTYPES}
    print(json.dumps({"torch": torch.__version__, "kernels": kernels}))
    return 0


def _kernels(dtype: str) -> tuple[str, str]:
    import numpy as np
    import torch
    from torch.profiler import ProfilerActivity, profile

    from cuelight.engine.batch import Batch, Span
    from cuelight.engine.cache import KvCache
    from cuelight.engine.config import ModelConfig
    from cuelight.engine.model import attend_peers
    from cuelight.engine.rope import Rope

    # The default model's heads; no other size matters here.
    config = ModelConfig(1, 576, 1, 1, 9, 3, 64, 1024, 1e-5, Rope(1e4), True, False, False, None, frozenset())
    cache = KvCache(config, 8, getattr(torch, dtype))
    tables = np.arange(8, dtype=np.int32).reshape(4, 2)
    decode = [Span(np.zeros(1, np.int32), CONTEXT - row, tables[row]) for row in range(DECODING)]
    prefill = [Span(np.zeros(CHUNK, np.int32), 0, tables[2])]
    found = []
    for spans in (decode, prefill):
        (peers,) = Batch(spans, config).peers
        queries = torch.zeros(peers.last, config.kv_heads, config.heads // config.kv_heads, config.head_dim)
        with torch.inference_mode(), profile(activities=[ProfilerActivity.CPU]) as seen:
            attend_peers(queries.to(getattr(torch, dtype)), 0, peers, cache)
        names = [event.key for event in seen.key_averages()]
        found.append(next((name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)), "unknown"))
    return found[0], found[1]


if __name__ == "__main__":
    sys.exit(main())
