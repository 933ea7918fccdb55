"""What is generated from the register map is fresh, and its three languages agree."""

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest
from amaranth.lib import data

import cuelight.regmap as host
import cuelight_rtl.regmap as rtl

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "kernels/include/cuelight_regs.h"
STRUCTS = sorted(
    name for name, kind in vars(rtl).items() if isinstance(kind, type(data.Struct)) and kind is not data.Struct
)


def test_generated_files_are_fresh() -> None:
    """`make regs` would change nothing."""
    check = subprocess.run(
        [sys.executable, "-m", "regs", "--check"], cwd=ROOT / "rtl", capture_output=True, text=True, timeout=60
    )
    assert check.returncode == 0, check.stdout + check.stderr


def test_a_changed_map_is_noticed(tmp_path: Path) -> None:
    """The check above can fail."""
    copy = tmp_path / "project"
    for name in ("rtl/cuelight.rdl", "rtl/cuelight_rtl/regmap.py", "host/cuelight/regmap.py"):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text((ROOT / name).read_text().replace("OFFER_ID @ 0x20", "OFFER_ID @ 0x24"))
    (copy / "rtl/regs").symlink_to(ROOT / "rtl/regs")
    code = "import pathlib, regs.__main__ as m; m.ROOT = pathlib.Path('..'); m.sys.exit(m.main())"
    check = subprocess.run(
        [sys.executable, "-c", code, "--check"], cwd=copy / "rtl", capture_output=True, text=True, timeout=60
    )
    assert check.returncode == 1, check.stderr
    assert "host/cuelight/regmap.py is stale" in check.stdout


@pytest.mark.parametrize("name", STRUCTS)
def test_rtl_and_host_agree_on_every_bit(name: str) -> None:
    """Packing one field full of ones sets the bits that the RTL's struct has for it."""
    layout = getattr(rtl, name).as_shape()
    record = getattr(host, name)
    assert layout.size in (32, 64)
    fields = [field.name for field in dataclasses.fields(record)]
    assert fields == [key for key, _ in layout if not key.startswith("_")]
    for name in fields:
        position, width = layout[name].offset, layout[name].width
        word = ((1 << width) - 1) << position
        values = dict.fromkeys(fields, 0) | {name: (1 << width) - 1}
        assert record(**values).pack() == word
        assert record.unpack(word) == record(**values)


def test_a_field_that_does_not_fit_is_refused() -> None:
    """Nothing spills into the neighbour."""
    with pytest.raises(ValueError, match="tier is 2 bits wide and cannot hold 4"):
        host.PageSchedAttr(tier=4).pack()


def test_header_agrees_with_python() -> None:
    """Every offset, stride, count, size and reset of the C header stands in the Python module with its value."""
    defines = dict(re.findall(r"^#define CUELIGHT_(\w+) +(0x[0-9a-f]+|\d+)u?l*$", HEADER.read_text(), re.M))
    python = {name: value for name, value in vars(host).items() if isinstance(value, int) and name.isupper()}
    for kind in vars(host).values():
        if isinstance(kind, type) and hasattr(kind, "SIZE"):
            prefix = re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).upper()
            python |= {f"{prefix}_{name}": value for name, value in vars(kind).items() if name.isupper()}
    fields = {name for name in defines if re.search(r"_(BIT|WIDTH|MASK)$", name)}
    assert {name: int(value, 0) for name, value in defines.items() if name not in fields} == python


@pytest.mark.parametrize("command", ["gcc -std=c99 -x c", "g++ -std=c++17 -x c++"])
def test_header_compiles_without_a_warning(command: str, tmp_path: Path) -> None:
    """Plain C99 and C++17; macros and enumerations only."""
    source = tmp_path / "use"
    source.write_text("#include <cuelight_regs.h>\nint kind = CUELIGHT_COMMIT_KIND_ADMIT;\n")
    flags = ["-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{HEADER.parent}"]
    subprocess.run([*command.split(), *flags, str(source)], check=True, timeout=60)
