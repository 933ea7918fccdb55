"""Models by their name on the Hugging Face hub, from its cache or fetched into it by `huggingface_hub`."""

from __future__ import annotations

import re
from pathlib import Path

from cuelight.engine.config import read_json
from cuelight.engine.progress import Progress, silent
from cuelight.errors import DownloadError, ModelFileError, UnknownModel

__all__ = ["fetch", "is_hub_name"]

_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*", re.ASCII)
_FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "model.safetensors",
    "model.safetensors.index.json",
    "model-*.safetensors",
)
_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"


def is_hub_name(name: str) -> bool:
    """Whether `name` has the form org/name."""
    return _NAME.fullmatch(name) is not None


def fetch(name: str, progress: Progress = silent) -> Path:
    """Directory of the model `name` in the hub's cache; the network is asked only if it is not there, or not whole.

    Where the cache is, which hub is asked and whether at all follows the environment, as `huggingface_hub` documents
    it: HF_HOME, HF_HUB_CACHE, HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE.

    Raises
    ------
    UnknownModel
        The hub has no such model, or not in this form.
    DownloadError
        It is not in the cache and could not be fetched.
    """
    import huggingface_hub as hub
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    try:
        try:
            cached = Path(hub.snapshot_download(name, allow_patterns=list(_FILES), local_files_only=True))
            if not _lacks(cached):
                return cached
        except LocalEntryNotFoundError:
            cached = None
        if hub.constants.HF_HUB_OFFLINE:
            state = f"lacks {_lacks(cached)} in" if cached else "is not in"
            raise DownloadError(
                f"The model {name} {state} the cache {hub.constants.HF_HUB_CACHE} and HF_HUB_OFFLINE is set; "
                "unset it, or fetch the model while online."
            )
        progress(f"downloading {name}", 0.0)
        found = Path(hub.snapshot_download(name, allow_patterns=list(_FILES)))
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
        if isinstance(error, DownloadError):
            raise
        raise DownloadError(
            f"The model {name} is not in the cache and could not be fetched ({_first_words(error)}); "
            "check the network and try again."
        ) from error
    progress(f"downloading {name}", 1.0)
    if missing := _lacks(found):
        raise UnknownModel(
            f"The hub's {name} has no {missing}; take a model with config.json, tokenizer.json and safetensors."
        )
    return found


def _lacks(directory: Path | None) -> str | None:
    """A file that the engine needs and that is not in `directory`."""
    if directory is None:
        return "everything"
    needed = ["config.json", "tokenizer.json"]
    if (directory / _INDEX).exists():
        try:
            weight_map = read_json(directory / _INDEX).get("weight_map") or {}
        except ModelFileError:
            return _INDEX
        needed += sorted({str(file) for file in weight_map.values()})
    else:
        needed.append(_WEIGHTS)
    return next((file for file in needed if not (directory / file).exists()), None)


def _first_words(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")
