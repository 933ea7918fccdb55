"""Every fault of the mutation check can still be planted, and names proofs that there are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import cuelight_rtl
from benches.run import BENCHES
from cuelight_formal.proofs import PROOFS
from cuelight_mutation.__main__ import plant
from cuelight_mutation.faults import FAULTS, Fault


@pytest.mark.parametrize("fault", [pytest.param(fault, id=fault.name) for fault in FAULTS])
def test_it_can_be_planted(fault: Fault, tmp_path: Path) -> None:
    source = Path(cuelight_rtl.__file__).parent
    (tmp_path / fault.file).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source / fault.file, tmp_path / fault.file)
    plant(fault, tmp_path)
    compile((tmp_path / fault.file).read_text(), fault.file, "exec")
    assert (tmp_path / fault.file).read_text() != (source / fault.file).read_text()
    assert fault.proofs or fault.benches or fault.schedules >= 0
    assert set(fault.proofs) <= {proof.name for proof in PROOFS}
    assert set(fault.benches) <= set(BENCHES)
