"""Native code of the host: compiled by g++ at first use, cached by the hash of its sources."""

from __future__ import annotations

import ctypes
import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from cuelight.errors import BuildError

__all__ = ["cache_folder", "library"]

_NATIVE = Path(__file__).parent
_INCLUDE = Path(__file__).parents[3] / "kernels" / "include"
_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra")
_COMPILE_TIMEOUT_S = 120


def cache_folder() -> Path:
    """Folder for what can be made again: `$XDG_CACHE_HOME/cuelight`, or `~/.cache/cuelight`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cuelight"


@functools.cache
def library(name: str) -> ctypes.CDLL:
    """Load `<name>.cpp` of this folder as a shared library, compiled if this is the first use.

    Raises
    ------
    BuildError
        g++ is missing or refused the source.
    """
    source = _NATIVE / f"{name}.cpp"
    digest = hashlib.sha256(" ".join(_FLAGS).encode())
    for file in (source, *sorted(_NATIVE.glob("*.hpp")), *sorted(_INCLUDE.glob("*.h"))):
        digest.update(file.read_bytes())
    folder = cache_folder() / "native"
    target = folder / f"{name}-{digest.hexdigest()[:32]}.so"
    if not target.exists():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _compile(source, target)
        except OSError as error:
            raise BuildError(
                f"Native code cannot be cached in {folder} ({error.strerror}); set XDG_CACHE_HOME to a writable folder."
            ) from error
    return ctypes.CDLL(str(target), use_errno=True)


def _compile(source: Path, target: Path) -> None:
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        raise BuildError("No C++ compiler was found; install g++ (apt-get install g++).")
    with open(target.with_suffix(".lock"), "w") as lock, tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            return
        made = Path(scratch) / target.name
        command = [compiler, *_FLAGS, f"-I{_INCLUDE}", str(source), "-o", str(made)]
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=_COMPILE_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise BuildError(f"{compiler} needs over {_COMPILE_TIMEOUT_S} s for {source.name}; try again.") from error
        if result.returncode:
            raise BuildError(f"{compiler} refused {source.name}: {_first_error(result.stderr)}")
        made.rename(target)


def _first_error(output: str) -> str:
    lines = output.splitlines()
    return next((line for line in lines if "error" in line), lines[-1] if lines else "no message")
