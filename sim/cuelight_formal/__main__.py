"""`python -m cuelight_formal [--fast] [NAME …]`: proves, prints a table, and counts."""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.table import Table

from .proof import Proof, ProofError, Result
from .proofs import PROOFS
from .spec import Kind

FOLDER = Path("build/formal")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m cuelight_formal", description="Proves the scheduler's rooms.")
    parser.add_argument("--fast", action="store_true", help="only what every test run proves")
    parser.add_argument("--list", action="store_true", help="name the proofs and stop")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="proofs side by side (default: one a core)")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these proofs")
    arguments = parser.parse_args()
    known = {proof.name: proof for proof in PROOFS}
    unknown = [name for name in arguments.names if name not in known]
    if unknown:
        parser.error(f"there is no proof {unknown[0]}; the proofs are {', '.join(known)}.")
    chosen = [known[name] for name in arguments.names] or [
        proof for proof in PROOFS if proof.fast or not arguments.fast
    ]
    if arguments.list:
        print("\n".join(proof.name for proof in chosen))
        return 0
    console = Console(width=None if sys.stdout.isatty() else 150)
    results = []
    with ThreadPoolExecutor(arguments.jobs) as workers:
        try:
            for proof, result in zip(chosen, workers.map(lambda proof: proof.run(FOLDER), chosen), strict=True):
                results.append(result)
                console.print(_table(proof, result))
        except ProofError as error:
            console.print(str(error), style="red", highlight=False)
            return 2
    console.print(_summary(results), highlight=False)
    return 0 if all(result.holds for result in results) else 1


def _table(proof: Proof, result: Result) -> Table:
    time = f"{result.seconds:.0f} s{', remembered' if result.remembered else ''}"
    title = f"{proof.name}: {proof.method.value}, {result.cycles} cycle{'s' * (result.cycles != 1)}, {time}"
    table = Table(title=title, title_justify="left", expand=True, show_edge=False)
    table.add_column("sentence", ratio=1)
    table.add_column("kind")
    table.add_column("says something from cycle", justify="right")
    table.add_column("verdict")
    for claim, verdict, reached in zip(result.claims, result.verdicts, result.reached, strict=True):
        style = "green" if verdict.good else "red"
        table.add_row(claim.sentence, claim.kind, str(reached) if reached >= 0 else "", f"[{style}]{verdict.value}[/]")
    return table


def _summary(results: list[Result]) -> str:
    pairs = [pair for result in results for pair in zip(result.claims, result.verdicts, strict=True)]
    counts = [sum(claim.kind == kind for claim, verdict in pairs) for kind in (Kind.CLAIM, Kind.LEMMA, Kind.REACH)]
    failed = sum(not verdict.good for _, verdict in pairs)
    seconds = sum(result.seconds for result in results if not result.remembered)
    return (
        f"{len(results)} proofs: {counts[0]} claims, {counts[1]} lemmas and {counts[2]} situations, "
        f"{failed} of them not shown; {seconds:.0f} s of solving."
    )


if __name__ == "__main__":
    sys.exit(main())
