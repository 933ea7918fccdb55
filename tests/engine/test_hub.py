"""Models by hub name, from a cache laid out as huggingface_hub lays it out; or a hub on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cuelight.engine.hub import is_hub_name

from .hub_cache import COMMIT, NAME, Hub, cache_files, resolve, serving
from .tiny import save_model


def cache_model(home: Path, *, sharded: bool = False) -> Path:
    """Put a model in a hub cache; returns its snapshot."""
    plain = home / "plain"
    model = save_model(plain)
    if sharded:
        (plain / "model.safetensors").unlink()
        model.save_pretrained(plain, max_shard_size="100KB")
    (plain / "tokenizer.json").write_text("{}")
    return cache_files(home, plain)


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
    # Nobody listens at the discard port.
    said = resolve("acme/other", tmp_path, HF_ENDPOINT="http://127.0.0.1:9")
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
        ("Qwen/Qwen2.5-0.5B-Instruct-GGUF:Q8_0", True),
        ("acme/tiny:folder/tiny-q4_1.gguf", True),
        ("acme/tiny:", False),
        ("acme/tiny:../x", False),
        ("acme/tiny.gguf", False),
        ("acme/odd--name", False),
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


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    save_model(tmp_path / "served")
    (tmp_path / "served" / "tokenizer.json").write_text("{}")
    (tmp_path / "served" / "pytorch_model.bin").write_text("not wanted")
    with serving(tmp_path / "served") as hub:
        yield hub


def test_model_is_fetched_once_and_only_what_is_needed(hub: Hub, tmp_path: Path) -> None:
    home, address = tmp_path / "home", f"http://127.0.0.1:{hub.server_port}"
    folder = Path(resolve(NAME, home, HF_ENDPOINT=address))
    assert folder == home / "hub" / "models--acme--tiny-llama" / "snapshots" / COMMIT
    taken = {file.name for file in folder.iterdir()}
    assert taken == {file.name for file in hub.folder.iterdir()} - {"pytorch_model.bin"}
    assert (folder / "model.safetensors").read_bytes() == (hub.folder / "model.safetensors").read_bytes()
    hub.asked.clear()
    assert resolve(NAME, home, HF_ENDPOINT=address) == str(folder)
    assert hub.asked == []
    # What is missing is fetched again.
    (folder / "tokenizer.json").unlink()
    assert resolve(NAME, home, HF_ENDPOINT=address) == str(folder)
    assert (folder / "tokenizer.json").exists()


@pytest.mark.parametrize(
    ("name", "words"),
    [("acme/none", "UnknownModel: The hub has no model acme/none"), ("acme/gated", "DownloadError: The hub shows")],
)
def test_model_the_hub_does_not_give_is_a_sentence(name: str, words: str, hub: Hub, tmp_path: Path) -> None:
    said = resolve(name, tmp_path / "home", HF_ENDPOINT=f"http://127.0.0.1:{hub.server_port}")
    assert said.startswith(words)
    assert said.endswith("set HF_TOKEN.")


def test_model_in_another_form_is_refused(hub: Hub, tmp_path: Path) -> None:
    (hub.folder / "model.safetensors").unlink()
    said = resolve(NAME, tmp_path / "home", HF_ENDPOINT=f"http://127.0.0.1:{hub.server_port}")
    assert said.startswith(f"UnknownModel: The hub's {NAME} has no model.safetensors; ")
