"""`cuelight status`."""

from __future__ import annotations

import argparse
import json

from rich.console import Console
from rich.table import Table

from cuelight.cli.progress import show_progress
from cuelight.device import Device
from cuelight.status import Status

__all__ = ["run_status"]


def run_status(arguments: argparse.Namespace) -> None:
    """Print a device's status, as tables or as JSON."""
    with show_progress() as progress:
        progress("opening the device", 0)
        device = Device.open(arguments.device, progress=progress)
    with device:
        status = device.status()
    if arguments.json:
        print(json.dumps({"device": arguments.device, **status.to_dict()}))
    else:
        _print_tables(Console(highlight=False), arguments.device, status)


def _print_tables(console: Console, uri: str, status: Status) -> None:
    console.print(f"[bold]{uri}[/]: version {status.version}, RTL {status.rtl_hash[:16]}, boot {status.boot_nonce:#x}")
    console.print(
        f"{status.active} of {status.slots} slots in use, {status.stages} stages, {status.cycles:,} cycles since reset"
    )
    lanes = Table(box=None, header_style="dim", pad_edge=False)
    for heading in ("lane", "state", "sequence", "passes", "busy", "queued", "seated", "decoding", "seats", "KV free"):
        lanes.add_column(heading, justify="left" if heading == "state" else "right")
    for index, (lane, group) in enumerate(zip(status.lanes, status.groups, strict=True)):
        state = "resetting" if lane.resetting else f"stage {lane.stage}" if lane.outstanding else "idle"
        occupancy = (str(group.queued), str(group.seated), str(group.decoding), str(group.seats))
        credit = f"{group.kv_free} of {group.kv_blocks}"
        busy = f"{lane.busy_ns / 1e9:.3f} s"
        lanes.add_row(str(index), state, str(lane.sequence), str(lane.passes), busy, *occupancy, credit)
    console.print()
    console.print(lanes)
    console.print()
    counters = Table(box=None, show_header=False, pad_edge=False)
    for name, value in status.to_dict()["counters"].items():
        if value:
            counters.add_row(name.replace("_", " "), f"{value:,}")
    console.print(counters if counters.row_count else "[dim]all counters are 0[/]")
