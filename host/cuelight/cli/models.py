"""`cuelight models`."""

from __future__ import annotations

import argparse
import json
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cuelight.cli.progress import show_progress
from cuelight.engine.cached import cached_models, remove_model
from cuelight.engine.weights import DEFAULT_MODEL, MODELS, models_folder, resolve

__all__ = ["run_models"]


def run_models(arguments: argparse.Namespace) -> None:
    """List, fetch or remove models."""
    match arguments.action:
        case "fetch":
            with show_progress() as progress:
                path = resolve(arguments.name, progress)
            print(json.dumps({"path": str(path)}) if arguments.json else f"{arguments.name} is in {path}")
        case "remove":
            for name in arguments.names:
                freed = remove_model(name)
                print(
                    json.dumps({"removed": name, "bytes": freed})
                    if arguments.json
                    else f"removed {name}, {_size(freed)}"
                )
        case _:
            rows = _list()
            if arguments.json:
                for row in rows:
                    print(json.dumps(row))
            else:
                _print_table(rows)


def _list() -> list[dict[str, Any]]:
    cached = cached_models()
    rows: list[dict[str, Any]] = [
        {
            "name": model.name,
            "known": model.known,
            "default": model.known and model.name == DEFAULT_MODEL,
            "state": "outdated" if model.outdated else "ready",
            "bytes": model.bytes,
            "path": str(model.path),
        }
        for model in cached
    ]
    ready = {model.name for model in cached if model.known and not model.outdated}
    for name in sorted(MODELS.keys() - ready):
        rows.append(
            {
                "name": name,
                "known": True,
                "default": name == DEFAULT_MODEL,
                "state": "not fetched",
                "bytes": 0,
                "path": None,
            }
        )
    return sorted(rows, key=lambda row: (not row["known"], row["name"]))


def _print_table(rows: list[dict[str, Any]]) -> None:
    console = Console(highlight=False)
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("model", overflow="fold")
    table.add_column("state", no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("folder in the cache", overflow="fold")
    styles = {"ready": "green", "outdated": "yellow", "not fetched": "dim"}
    for row in rows:
        size = _size(row["bytes"]) if row["bytes"] else ""
        folder = row["path"].rpartition("/")[2] if row["path"] else ""
        table.add_row(Text(row["name"]), Text(row["state"], styles[row["state"]]), size, Text(folder))
    console.print(table)
    console.print()
    for word, value in (
        ("cache", str(models_folder())),
        ("default", DEFAULT_MODEL),
        ("fetch", "cuelight models fetch MODEL"),
        ("remove", "cuelight models remove MODEL"),
    ):
        console.print(Text(f"{word:<9}", "dim").append(value, "default"), soft_wrap=True)


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
