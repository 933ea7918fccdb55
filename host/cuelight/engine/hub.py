"""Models by their name on the Hugging Face hub, from its cache or fetched into it by `huggingface_hub`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from cuelight.engine.hub_files import FILES, choose_gguf, has_safetensors, lacking, models_of
from cuelight.engine.progress import Progress, silent
from cuelight.errors import CuelightError, DownloadError, UnknownModel

__all__ = ["HubModel", "cached_hub_models", "fetch", "find", "is_hub_name"]

_HUB_S = 10.0
_REPOSITORY = r"(?![^:]*(?:--|\.\.))[\w-][\w.-]*/[\w-][\w.-]*"
_NAME = re.compile(rf"({_REPOSITORY})(?::([\w-][\w./-]*))?", re.ASCII)


class HubModel(NamedTuple):
    """A model in the hub's cache.

    Parameters
    ----------
    name
        What stands for it, org/name or org/name:file.
    path
        Its directory or GGUF file.
    """

    name: str
    path: Path


def is_hub_name(name: str) -> bool:
    """Whether `name` has the form org/name, or org/name:file for one of several GGUF files."""
    match = _NAME.fullmatch(name)
    return match is not None and not match[1].endswith(".gguf")


def find(name: str) -> Path | None:
    """Directory or GGUF file of the model `name` in the hub's cache, if it is there and whole; asks no network.

    Raises
    ------
    UnknownModel
        The name can't be one of the hub's, or several GGUF files are there and it names none of them.
    """
    repository, selector = _parse(name)
    if (snapshot := _snapshot(repository)) is None:
        return None
    files = _files(snapshot)
    if selector is None and not lacking(snapshot):
        return snapshot
    if selector is None and has_safetensors(files):
        return None
    file = choose_gguf(repository, files, selector)
    return None if file is None else snapshot / file


def fetch(name: str, progress: Progress = silent) -> Path:
    """Directory or GGUF file of the model `name`, fetched into the hub's cache.

    Of a repository with safetensors these are taken unless `name` says otherwise, of one without them a GGUF file:
    the one it names, or else the only one, or else the only one in Q8_0.

    Where the cache is, which hub is asked and whether at all follows the environment, as `huggingface_hub` documents
    it: HF_HOME, HF_HUB_CACHE, HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE.

    Raises
    ------
    UnknownModel
        The hub has no such model, or not in this form; or the name fits several GGUF files.
    DownloadError
        It could not be fetched.
    """
    import huggingface_hub as hub

    repository, selector = _parse(name)
    if hub.constants.HF_HUB_OFFLINE:
        snapshot = _snapshot(repository)
        state = f"lacks {lacking(snapshot)} in" if snapshot and selector is None else "is not in"
        raise DownloadError(
            f"The model {name} {state} the cache {hub.constants.HF_HUB_CACHE} and HF_HUB_OFFLINE is set; "
            "unset it, or fetch the model while online."
        )
    progress(f"downloading {name}", 0.0)
    with _told_in_sentences(name):
        # What follows goes on trying for half a minute where nobody answers.
        hub.get_session().head(hub.constants.ENDPOINT, timeout=_HUB_S)
        files = hub.list_repo_files(repository)
        models = models_of(repository, files)
        if selector is None and (has_safetensors(files) or not models):
            found = Path(hub.snapshot_download(repository, allow_patterns=list(FILES)))
            if missing := lacking(found):
                raise UnknownModel(
                    f"The hub's {name} has no {missing}; take a model with config.json, tokenizer.json and "
                    "safetensors, or with a GGUF file."
                )
        else:
            if (file := choose_gguf(repository, files, selector)) is None:
                there = ", ".join(models.values()) or "none at all"
                raise UnknownModel(f"The hub's {repository} has no GGUF file {selector!r}; it has {there}.")
            found = Path(hub.hf_hub_download(repository, file))
    progress(f"downloading {name}", 1.0)
    return found


def cached_hub_models() -> list[HubModel]:
    """Models in the hub's cache, by name, whether this engine can run them or not."""
    import huggingface_hub as hub
    from huggingface_hub.errors import CacheNotFound

    try:
        repositories = hub.scan_cache_dir().repos
    except CacheNotFound:
        return []
    found = []
    for repository in repositories:
        name = repository.repo_id
        if repository.repo_type != "model" or (revision := repository.refs.get("main")) is None:
            continue
        files = _files(revision.snapshot_path)
        models = models_of(name, files)
        found += [HubModel(model, revision.snapshot_path / file) for file, model in models.items()]
        if has_safetensors(files) or not models:
            found.append(HubModel(name, revision.snapshot_path))
    return sorted(found)


def _parse(name: str) -> tuple[str, str | None]:
    match = _NAME.fullmatch(name)
    if match is None:
        raise UnknownModel(f"{name!r} is no name on the hub; give org/name, a .gguf file or a directory.")
    return match[1], match[2]


def _snapshot(repository: str) -> Path | None:
    # snapshot_download(local_files_only=True) would refuse one that lacks files nobody asked for.
    import huggingface_hub as hub
    from huggingface_hub.file_download import repo_folder_name

    folder = Path(hub.constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repository, repo_type="model")
    try:
        snapshot = folder / "snapshots" / (folder / "refs" / "main").read_text(encoding="utf-8")
    except OSError:
        return None
    return snapshot if snapshot.is_dir() else None


def _files(snapshot: Path) -> list[str]:
    return [file.relative_to(snapshot).as_posix() for file in snapshot.rglob("*") if file.is_file()]


@contextmanager
def _told_in_sentences(name: str) -> Iterator[None]:
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError

    try:
        yield
    except CuelightError:
        raise
    except HFValidationError as error:
        raise UnknownModel(f"{name!r} is no name on the hub; give org/name, a .gguf file or a directory.") from error
    except GatedRepoError as error:
        raise DownloadError(
            f"The hub shows {name} to those only who accepted its terms; accept them and set HF_TOKEN."
        ) from error
    except RepositoryNotFoundError as error:
        raise UnknownModel(
            f"The hub has no model {name}, or shows it to others only; check the name, or set HF_TOKEN."
        ) from error
    # httpx's errors are neither OSError nor ValueError.
    except Exception as error:
        raise DownloadError(
            f"The model {name} is not in the cache and could not be fetched ({_first_words(error)}); "
            "check the network and try again."
        ) from error


def _first_words(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")
