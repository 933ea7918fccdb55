"""Proofs tell true sentences from false ones, and from those that say nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.hdl import Module, ValueLike
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from cuelight_formal.proof import Method, Proof, ProofError, Verdict
from cuelight_formal.spec import Spec


class Counter(wiring.Component):  # type: ignore[misc]
    """Counts to 5, and goes on at 0."""

    def __init__(self) -> None:
        super().__init__({"step": In(1), "count": Out(4)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with m.If(self.step):
            m.d.sync += self.count.eq(self.count + 1)
            with m.If(self.count == 5):
                m.d.sync += self.count.eq(0)
        return m


def verdict(folder: Path, method: Method, then: str, when: str = "count == count") -> Verdict:
    def build() -> Spec:
        counter = Counter()
        spec = Spec(counter, lasting=method is Method.BOUNDED)
        names: dict[str, ValueLike] = {"count": counter.count, "step": counter.step, "before": spec.past(counter.count)}
        spec.claim("It holds.", eval(then, names), when=eval(when, names))
        return spec

    (only,) = Proof("counter", build, method, depth=4, cover_depth=8).run(folder, folder / "cache").verdicts
    return only


def test_what_always_holds_is_proven(tmp_path: Path) -> None:
    assert verdict(tmp_path, Method.INDUCTION, "count <= 5") is Verdict.PROVEN


def test_what_does_not_hold_is_false_and_leaves_a_trace(tmp_path: Path) -> None:
    assert verdict(tmp_path, Method.BOUNDED, "count != 2") is Verdict.FALSE
    assert (tmp_path / "counter" / "proof_prove" / "engine_0" / "trace.vcd").exists()


def test_what_needs_a_lemma_is_open(tmp_path: Path) -> None:
    assert verdict(tmp_path, Method.INDUCTION, "count != 15") is Verdict.OPEN


def test_what_says_nothing_is_vacuous(tmp_path: Path) -> None:
    assert verdict(tmp_path, Method.INDUCTION, "step == 1", when="count == 9") is Verdict.VACUOUS


def test_a_proof_is_remembered_until_the_room_or_a_sentence_changes(tmp_path: Path) -> None:
    def build(sentence: str) -> Spec:
        counter = Counter()
        spec = Spec(counter)
        spec.claim(sentence, counter.count <= 5)
        return spec

    runs = [
        Proof("counter", lambda sentence=sentence: build(sentence), Method.INDUCTION).run(tmp_path, tmp_path / "cache")  # type: ignore[misc]
        for sentence in ("It stays below 6.", "It stays below 6.", "It never gets to 6.")
    ]
    assert [run.remembered for run in runs] == [False, True, False]
    assert all(run.holds for run in runs)


def test_a_missing_solver_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda tool, path: None if tool == "z3" else tool)
    with pytest.raises(ProofError, match=r"z3 was not found; .*cuelight\[sim\]"):
        verdict(tmp_path, Method.INDUCTION, "count <= 5")
