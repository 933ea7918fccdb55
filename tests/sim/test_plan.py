"""The plans of docs/ name what there is: every bench, every proof and every bin, and nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from benches.run import BENCHES
from cuelight_formal.proofs import PROOFS
from cuelight_sim.coverage.model import FAMILIES

ROOT = Path(__file__).parents[2]
FEATURES = (
    *("three registers", "rules of the bus", "byte enable", "order of split writes", "half commands"),
    *("producer pages in parallel", "offers", "transition of a manual", "transition of an automatic", "reject reason"),
    *("stale pops", "tier and queue order", "minimum shares", "KV floors", "row and cost budgets", "chunks"),
    *("order of a loop point", "entries cancelled or parked", "pause", "park and credit", "two passes alive"),
    *("dispatch-ahead", "pipelined lanes", "1 and of 128 stages", "completions of every kind", "repeated"),
    *("out of order", "mixed with STAGE_DONE", "head, tail and only element of a queue", "seat in a pass", "twice"),
    *("epoch wrap", "0xFFFF_FFF0", "full device", "KV credit", "reset in any state", "event-trace overflow"),
    *("back-pressure on the dispatch port", "control registers validate", "REQ_STATUS is never all ones"),
    "at random, in lockstep",
)
"""What the device must not go without a test of."""


class Row(NamedTuple):
    feature: str
    benches: list[str]
    proofs: list[str]
    bins: list[str]


def read_plan(guide: str, columns: str) -> list[Row]:
    text = (ROOT / "docs" / guide).read_text()
    table = text.partition(f"| {columns} |\n")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[1:]]
    named = [[re.findall(r"`([^`]+)`", cell) for cell in cells] + [[]] for _, *cells in rows]
    return [Row(feature, *cells[:3]) for (feature, *_), cells in zip(rows, named, strict=True)]


@cache
def scripts(module: str) -> list[str]:
    """Names of a module's benches."""
    tree = ast.parse((ROOT / "sim" / "benches" / f"bench_{module}.py").read_text())
    return [
        function.name
        for function in tree.body
        if isinstance(function, ast.AsyncFunctionDef)
        and any(isinstance(decorator, ast.Name) and decorator.id == "bench" for decorator in function.decorator_list)
    ]


def benches(name: str) -> set[str]:
    """What `make sim` runs with BENCH and ONLY as the plan has them."""
    module, _, only = name.partition(" ")
    assert module in BENCHES, f"there is no module {module}"
    return {f"{module} {script}" for script in scripts(module) if re.search(only, script)}


def matching(pattern: str, names: Iterable[str]) -> set[str]:
    return {name for name in names if fnmatchcase(name, pattern)}


DEVICE = read_plan("verification.md", "feature | benches | proofs | bins")
PLAN = [*DEVICE, *read_plan("pcie.md", "feature | benches | proofs")]
KNOWN = {
    "benches": {f"{module} {script}" for module in BENCHES for script in scripts(module)},
    "proofs": {proof.name for proof in PROOFS},
    "bins": {name for family in FAMILIES for name in family.reachable()},
}


def named(kind: str, row: Row) -> list[tuple[str, set[str]]]:
    """What stands in a cell, and what it stands for."""
    return [(name, benches(name) if kind == "benches" else matching(name, KNOWN[kind])) for name in getattr(row, kind)]


@pytest.mark.parametrize("kind", KNOWN)
def test_the_plan_names_everything_and_nothing_else(kind: str) -> None:
    cells = [cell for row in PLAN for cell in named(kind, row)]
    assert not [name for name, found in cells if not found]
    assert KNOWN[kind] == set().union(*(found for _, found in cells))


def test_every_feature_is_planned_and_tested() -> None:
    planned = [row.feature for row in DEVICE]
    assert not [feature for feature in FEATURES if not any(feature in text for text in planned)]
    assert not [row.feature for row in DEVICE if not row.benches or not row.bins]
