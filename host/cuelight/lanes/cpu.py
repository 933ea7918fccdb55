"""The CPU lane: a process that runs the stages a device dispatches to it. `python -m cuelight.lanes.cpu --help`."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import torch

from cuelight.engine.config import DTYPES
from cuelight.engine.model import Llama
from cuelight.errors import CuelightError, DeviceClosed, InvalidArgument, SegmentError
from cuelight.lanes.cpu_executor import CpuExecutor, StageResult
from cuelight.lanes.faults import LaneFault
from cuelight.lanes.port import LanePort
from cuelight.lanes.types import PassRecord, TokenStatus
from cuelight.segment import Segment

__all__ = ["main"]

_WATCH_S = 0.5
_NOBODY = PassRecord((), ())


def main(arguments: list[str] | None = None) -> int:
    """Wait for a place, load the model, then run dispatches until asked to end or the parent process is gone.

    The place is a line on standard input, ``{"segment": path, "lane": number}``; without one it ends.

    Tells the parent on standard output, one JSON object a line: ``{"doing": text, "share": 0 to 1}`` while loading,
    ``{"ready": true}``, or ``{"error": sentence}``.

    Returns
    -------
    int
        Exit status, 0 if the host asked for the end.
    """
    options = _parse(arguments)
    try:
        if not (place := sys.stdin.readline()):
            return 0
        segment, lane = _read_place(place)
        torch.set_num_threads(options.threads or _own_share(segment))
        model = Llama.load(
            options.model, lambda what, share: _say(doing=what, share=share), getattr(torch, options.dtype)
        )
        executor = CpuExecutor(model, options.blocks, options.stages)
        with LanePort(segment, lane) as port:
            _say(ready=True)
            _serve(port, executor, options.parent)
    except DeviceClosed:
        return 0
    except (CuelightError, MemoryError) as error:
        _say(error=str(error) or "The lane ran out of memory; give it fewer KV blocks.")
        return 1
    return 0


def _serve(port: LanePort, executor: CpuExecutor, parent: int) -> None:
    records: dict[int, tuple[int, PassRecord]] = {}
    while not port.stop_requested and os.getppid() == parent:
        if (dispatch := port.wait(_WATCH_S)) is None:
            continue
        number, record = records.get(dispatch.buffer, (0, _NOBODY))
        if dispatch.pass_number != number:
            try:
                record = port.record(dispatch)
            except SegmentError:
                # The device has taken the order back meanwhile.
                continue
            records[dispatch.buffer] = dispatch.pass_number, record
        result = executor.execute(dispatch.stage, dispatch.buffer, record, port.slot_record, port.mask)
        port.post_tokens(result.tokens)
        _log_faults(port.lane, result)
        port.complete(dispatch.sequence, result.finished)


def _log_faults(lane: int, result: StageResult) -> None:
    for token in result.tokens:
        if token.finish == TokenStatus.LANE_ERROR:
            fault = LaneFault(token.token).name
            print(f"lane {lane}: gave up on request {token.request_id:#010x}: {fault}", file=sys.stderr, flush=True)


def _read_place(line: str) -> tuple[Path, int]:
    try:
        place = json.loads(line)
        return Path(place["segment"]), int(place["lane"])
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidArgument('A lane\'s place is a line {"segment": path, "lane": number}; give it one.') from error


def _own_share(segment_path: Path) -> int:
    segment = Segment.open(segment_path)
    lanes = segment.shape.lanes
    segment.close()
    return max(1, len(os.sched_getaffinity(0)) // lanes)


def _say(**what: Any) -> None:
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(what), flush=True)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m cuelight.lanes.cpu", description="A lane on the CPU.")
    parser.add_argument("--model", type=Path, required=True, help="model directory")
    parser.add_argument("--stages", type=int, required=True, help="stages of the model, as the device counts them")
    parser.add_argument("--blocks", type=int, required=True, help="KV blocks of the lane")
    parser.add_argument("--threads", type=int, default=0, help="threads; 0: the processors divided by the lanes")
    parser.add_argument("--dtype", choices=DTYPES, default=DTYPES[0], help="of weights and KV cache")
    parser.add_argument("--parent", type=int, default=os.getppid(), help="process to end with")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
