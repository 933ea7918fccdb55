"""The proofs that take seconds; `make formal` has them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuelight_formal.proof import Proof
from cuelight_formal.proofs import PROOFS


@pytest.mark.parametrize("proof", [pytest.param(proof, id=proof.name) for proof in PROOFS if proof.fast])
def test_every_sentence_is_shown_and_says_something(proof: Proof, tmp_path: Path) -> None:
    result = proof.run(tmp_path)
    shown = zip(result.claims, result.verdicts, strict=True)
    assert [(claim.sentence, verdict.value) for claim, verdict in shown if not verdict.good] == []
