"""Models by hub name, from a cache laid out as huggingface_hub lays it out; nothing here reaches a network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuelight.engine.hub import is_hub_name

from .tiny import save_model

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAME = "acme/tiny-llama"


def cache_model(home: Path, *, sharded: bool = False) -> Path:
    """Put a model in a hub cache: blobs, a snapshot of links to them, and a ref; returns the snapshot."""
    repository = home / "hub" / f"models--{NAME.replace('/', '--')}"
    snapshot = repository / "snapshots" / COMMIT
    for folder in (repository / "blobs", repository / "refs", snapshot):
        folder.mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    plain = home / "plain"
    model = save_model(plain)
    if sharded:
        (plain / "model.safetensors").unlink()
        model.save_pretrained(plain, max_shard_size="100KB")
    (plain / "tokenizer.json").write_text("{}")
    for number, file in enumerate(sorted(plain.iterdir())):
        blob = repository / "blobs" / f"{number:040x}"
        file.rename(blob)
        (snapshot / file.name).symlink_to(os.path.relpath(blob, snapshot))
    return snapshot


def resolve(name: str, home: Path, **environment: str) -> str:
    """What `resolve` says in a process of its own: huggingface_hub reads the environment when it is imported."""
    program = (
        "import sys\n"
        "from cuelight.engine.weights import resolve\n"
        "from cuelight.errors import CuelightError\n"
        "try:\n"
        "    print(resolve(sys.argv[1]))\n"
        "except CuelightError as error:\n"
        "    print(type(error).__name__, error, sep=': ')\n"
    )
    clean = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    run = subprocess.run(
        [sys.executable, "-c", program, name],
        env=clean | {"HF_HOME": str(home), "HF_ENDPOINT": "http://127.0.0.1:9"} | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return run.stdout.rstrip("\n")


@pytest.mark.parametrize("offline", ["1", "0"])
@pytest.mark.parametrize("sharded", [False, True])
def test_cached_model_is_found_without_a_network(offline: str, sharded: bool, tmp_path: Path) -> None:
    snapshot = cache_model(tmp_path, sharded=sharded)
    assert resolve(NAME, tmp_path, HF_HUB_OFFLINE=offline) == str(snapshot)


@pytest.mark.parametrize("missing", ["config.json", "tokenizer.json", "model-00002-of-"])
def test_half_a_model_in_the_cache_is_none(missing: str, tmp_path: Path) -> None:
    snapshot = cache_model(tmp_path, sharded=True)
    file = next(file for file in snapshot.iterdir() if file.name.startswith(missing))
    file.unlink()
    said = resolve(NAME, tmp_path, HF_HUB_OFFLINE="1")
    assert said.startswith(f"DownloadError: The model {NAME} ")
    assert said.endswith("fetch the model while online.")


def test_model_that_is_not_cached_is_refused_offline(tmp_path: Path) -> None:
    said = resolve("acme/other", tmp_path, HF_HUB_OFFLINE="1")
    assert said == (
        f"DownloadError: The model acme/other is not in the cache {tmp_path / 'hub'} and HF_HUB_OFFLINE is set; "
        "unset it, or fetch the model while online."
    )


def test_hub_that_cannot_be_reached_is_a_sentence(tmp_path: Path) -> None:
    said = resolve("acme/other", tmp_path)
    assert said.startswith("DownloadError: The model acme/other is not in the cache and could not be fetched (")
    assert said.endswith("); check the network and try again.")
    assert "\n" not in said


def test_path_goes_before_hub_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache_model(tmp_path)
    monkeypatch.chdir(tmp_path)
    save_model(tmp_path / NAME)
    assert resolve(NAME, tmp_path) == NAME


@pytest.mark.parametrize(
    ("name", "is_name"),
    [
        ("Qwen/Qwen2.5-0.5B-Instruct", True),
        ("meta-llama/Llama-3.2-1B", True),
        ("smollm", False),
        ("/a/b", False),
        ("./a/b", False),
        ("a/b/c", False),
        ("../b", False),
        ("a/..", False),
        ("a/b c", False),
        ("~/b", False),
        ("", False),
    ],
)
def test_names_of_the_hub_are_told_from_paths(name: str, is_name: bool) -> None:
    assert is_hub_name(name) is is_name


@pytest.mark.parametrize("name", ["folder/model.gguf", "a/b/c", "acme/odd--name"])
def test_what_is_neither_path_nor_hub_name_is_refused(name: str, tmp_path: Path) -> None:
    said = resolve(name, tmp_path, HF_HUB_OFFLINE="1")
    assert said.startswith("UnknownModel: ")
    assert said.endswith(".")
