import subprocess
import sys

import pytest

HEAVY = ("torch", "amaranth", "tokenizers", "gguf", "jinja2", "safetensors", "cuelight_rtl")


@pytest.mark.parametrize("module", ["cuelight", "cuelight.lanes.port"])
def test_driving_a_device_needs_neither_model_nor_hardware_packages(module: str) -> None:
    program = f"import sys, {module}; print(*sorted(set(sys.modules) & set({HEAVY})))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.split() == []


def test_what_the_package_names_is_there() -> None:
    import cuelight

    assert all(hasattr(cuelight, name) for name in cuelight.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = cuelight.Nothing
