"""What several tests of the driver begin with."""

from pathlib import Path

import pytest

from cuelight.engine.convert import convert

from ..engine.tiny import write_gguf


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of a small random model, which nobody changes."""
    folder = tmp_path_factory.mktemp("model")
    write_gguf(folder / "tiny.gguf")
    convert(folder / "tiny.gguf", folder)
    return folder
