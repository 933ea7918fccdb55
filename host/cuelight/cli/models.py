"""`cuelight models`."""

from __future__ import annotations

import argparse
import json
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cuelight.cli.model_page import show_model
from cuelight.cli.progress import show_progress
from cuelight.cli.units import size
from cuelight.engine.cached import cached_models, remove_model
from cuelight.engine.describe import Description, describe
from cuelight.engine.hub import cached_hub_models
from cuelight.engine.weights import DEFAULT_MODEL, MODELS, models_folder, resolve

__all__ = ["run_models"]

STYLES = {"ready": "green", "can't run": "red", "outdated": "yellow", "not fetched": "dim"}


def run_models(arguments: argparse.Namespace) -> None:
    """List, show, fetch or remove models."""
    match arguments.action:
        case "show":
            show_model(arguments.name, arguments.json)
        case "fetch":
            with show_progress() as progress:
                path = resolve(arguments.name, progress)
            print(json.dumps({"path": str(path)}) if arguments.json else f"{arguments.name} is in {path}")
        case "remove":
            for name in arguments.names:
                freed = remove_model(name)
                said = json.dumps({"removed": name, "bytes": freed}) if arguments.json else ""
                print(said or f"removed {name}, {size(freed)}")
        case _:
            rows = _list()
            if arguments.json:
                for row in rows:
                    print(json.dumps(row.to_dict()))
            else:
                _print_table(rows)


@dataclass(frozen=True, slots=True)
class Row:
    """A model in the list."""

    name: str
    place: str
    """`cuelight` or `hub`: whose cache it is in, or would be."""
    path: Path | None
    bytes: int
    """On disk."""
    about: Description | None
    """None: not fetched."""
    outdated: bool = False

    @property
    def state(self) -> str:
        """One of `STYLES`."""
        if self.about is None:
            return "not fetched"
        return "outdated" if self.outdated else "can't run" if self.about.problem else "ready"

    def to_dict(self) -> dict[str, Any]:
        """Make it JSON-ready."""
        return {
            "name": self.name,
            "default": self.name == DEFAULT_MODEL,
            "place": self.place,
            "state": self.state,
            "problem": self.about and self.about.problem,
            "family": self.about and self.about.family,
            "dtype": self.about and self.about.dtype,
            "bytes": self.bytes,
            "path": self.path and str(self.path),
        }


def _list() -> list[Row]:
    cached = cached_models()
    names = [model.name for model in cached]
    rows = []
    for model in cached:
        # A name stands for one model: what this version made of a known one, or the only one of an unknown one.
        known = model.name in MODELS
        bare = model.known and not model.outdated if known else names.count(model.name) == 1
        own = model.name if bare else model.path.name
        rows.append(Row(own, "cuelight", model.path, model.bytes, describe(model.path), model.outdated))
    for hub_model in cached_hub_models():
        about = describe(hub_model.path)
        rows.append(Row(hub_model.name, "hub", hub_model.path, about.bytes, about))
    missing = MODELS.keys() - {model.name for model in cached if model.known and not model.outdated}
    rows += [Row(name, "cuelight", None, 0, None) for name in missing]
    return sorted(rows, key=lambda row: (row.name not in MODELS, row.place, row.name))


def _print_table(rows: list[Row]) -> None:
    console = Console(highlight=False)
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("model", overflow="fold")
    for heading in ("state", "family", "weights"):
        table.add_column(heading, no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("cache", no_wrap=True)
    for row in rows:
        name = Text(row.name).append(" (default)" if row.name == DEFAULT_MODEL else "", "dim")
        family, dtype = (row.about.family, row.about.dtype) if row.about else (None, None)
        used = size(row.bytes) if row.bytes else ""
        table.add_row(name, Text(row.state, STYLES[row.state]), family or "", dtype or "", used, row.place)
    console.print(table)
    console.print()
    for row in rows:
        if row.about and row.about.problem and not row.outdated:
            for line in textwrap.wrap(f"{row.name}: {row.about.problem}", console.width, subsequent_indent="  "):
                console.print(Text(line, "yellow"))
            console.print()
    for word, value in (
        ("cache", str(models_folder())),
        ("hub", _hub_folder()),
        ("show", "cuelight models show MODEL"),
        ("fetch", "cuelight models fetch MODEL"),
        ("remove", "cuelight models remove MODEL, for those in cuelight's own cache"),
    ):
        console.print(Text(f"{word:<8}", "dim").append(value, "default"), soft_wrap=True)


def _hub_folder() -> str:
    from huggingface_hub import constants

    return str(constants.HF_HUB_CACHE)
