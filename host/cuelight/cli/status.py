"""`cuelight status`: running devices, once or as a live view; or a device opened just to look at it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.layout import Layout
from rich.live import Live
from rich.text import Text

from cuelight.cli.device_view import DeviceView
from cuelight.cli.keys import Keys
from cuelight.cli.progress import show_progress
from cuelight.device import Device
from cuelight.errors import CuelightError, DeviceClosed, UnknownDevice
from cuelight.observe import find_devices, observe
from cuelight.snapshot import Snapshot

__all__ = ["run_status"]

NOTHING = (
    "No device is running; start one with `cuelight generate`, `cuelight demo` or LLM.open in a program, "
    "or look at a fresh one with `cuelight status --device twin`."
)


def run_status(arguments: argparse.Namespace) -> None:
    """Print or keep showing what devices say about themselves.

    Raises
    ------
    UnknownDevice
        None is running, or none in the process that was named.
    """
    console = Console(highlight=False)
    if arguments.device is not None:
        with show_progress() as progress:
            progress("opening the device", 0)
            device = Device.open(arguments.device, title="opened to look at it", progress=progress)
        with device:
            _print_all(console, [device.snapshot()], arguments.json)
        return
    if arguments.watch and arguments.json:
        _watch_json(arguments.pid, arguments.interval)
    elif arguments.watch or (console.is_terminal and not arguments.once and not arguments.json):
        if not arguments.watch:
            _look(arguments.pid)
        _watch(console, arguments.pid, arguments.interval)
    else:
        _print_all(console, _look(arguments.pid), arguments.json)


def _look(pid: int | None) -> list[Snapshot]:
    """Snapshots of what runs; one that can't be looked at is told on standard error, if others can."""
    snapshots, errors = _observe_all(pid)
    if not snapshots:
        if errors:
            raise errors[0]
        if pid is not None:
            raise UnknownDevice(f"Process {pid} has no device open; leave --pid out to see those that run.")
        raise UnknownDevice(NOTHING)
    for error in errors:
        print(f"cuelight: {error}", file=sys.stderr)
    return snapshots


def _observe_all(pid: int | None) -> tuple[list[Snapshot], list[CuelightError]]:
    snapshots: list[Snapshot] = []
    errors: list[CuelightError] = []
    for path in find_devices():
        try:
            snapshot = observe(path)
        except DeviceClosed:
            continue
        except CuelightError as error:
            errors.append(error)
            continue
        if pid in (None, snapshot.pid):
            snapshots.append(snapshot)
    return snapshots, errors


def _print_all(console: Console, snapshots: Sequence[Snapshot], as_json: bool) -> None:
    if as_json:
        for snapshot in snapshots:
            print(json.dumps(snapshot.to_dict()), flush=True)
    else:
        console.print(_page([DeviceView(snapshot) for snapshot in snapshots]))


def _watch_json(pid: int | None, interval_s: float) -> None:
    with Keys() as keys:
        while keys.wait(0) != "q":
            for snapshot in _observe_all(pid)[0]:
                print(json.dumps(snapshot.to_dict()), flush=True)
            if keys.wait(interval_s) == "q":
                return


def _watch(console: Console, pid: int | None, interval_s: float) -> None:
    before: dict[int, Snapshot] = {}
    with Keys() as keys, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            snapshots, errors = _observe_all(pid)
            lines = (console.height - 2 - len(errors)) // max(1, len(snapshots)) - 1
            views: list[RenderableType] = [
                DeviceView(snapshot, before.get(snapshot.status.boot_nonce), lines) for snapshot in snapshots
            ]
            views += [Text(str(error), "red") for error in errors]
            foot = Text(f"every {interval_s:g} s; q quits", "dim")
            screen = Layout()
            # The foot stays where devices need more lines than there are.
            screen.split_column(Layout(_page(views or [Text(NOTHING)])), Layout(foot, size=1))
            live.update(screen, refresh=True)
            before = {snapshot.status.boot_nonce: snapshot for snapshot in snapshots}
            if keys.wait(interval_s) == "q":
                return


def _page(views: Sequence[RenderableType]) -> Group:
    parts: list[RenderableType] = []
    for view in views:
        parts += [view, Text()]
    return Group(*parts[:-1])
