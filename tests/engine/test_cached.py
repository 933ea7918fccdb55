"""The models in the cache: listed with what they take, and removed whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cuelight.cli import main
from cuelight.engine.cached import cached_models, remove_model
from cuelight.engine.weights import DEFAULT_MODEL, LAYOUT, MODELS, resolve
from cuelight.errors import ModelFileError, UnknownModel

from .tiny import write_gguf

KNOWN = f"{DEFAULT_MODEL}-{MODELS[DEFAULT_MODEL].file_sha256[:16]}"


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "cuelight" / "models"


def put(folder: Path, name: str, size: int) -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / "model.safetensors").write_bytes(os.urandom(size))
    return folder / name


def test_a_converted_file_is_listed_under_its_name_until_it_is_removed(tmp_path: Path, cache_folder: Path) -> None:
    write_gguf(tmp_path / "my-model.v2.gguf")
    path = resolve(tmp_path / "my-model.v2.gguf")
    (model,) = cached_models()
    assert (model.name, model.path, model.known, model.outdated) == ("my-model.v2", path, False, False)
    assert model.bytes >= sum(file.stat().st_size for file in path.iterdir())
    assert remove_model("my-model.v2") == model.bytes
    assert list(cache_folder.iterdir()) == []
    assert resolve(tmp_path / "my-model.v2.gguf") == path


def test_known_outdated_and_half_made_ones_are_told_apart(cache_folder: Path) -> None:
    put(cache_folder, f"{KNOWN}-v{LAYOUT}", 10_000)
    put(cache_folder, f"{KNOWN}-v{LAYOUT + 1}", 10_000)
    put(cache_folder, f"{DEFAULT_MODEL}-{'0' * 16}-v{LAYOUT}", 10_000)
    put(cache_folder, ".new-abc", 10_000)
    (cache_folder / f"file-{'0' * 16}-v1").touch()
    found = {model.path.name: (model.known, model.outdated) for model in cached_models()}
    assert found == {
        f"{KNOWN}-v{LAYOUT}": (True, False),
        f"{KNOWN}-v{LAYOUT + 1}": (True, True),
        f"{DEFAULT_MODEL}-{'0' * 16}-v{LAYOUT}": (False, False),
    }
    remove_model(f"{KNOWN}-v{LAYOUT + 1}")
    assert len(cached_models()) == 2
    remove_model(DEFAULT_MODEL)
    assert cached_models() == []


@pytest.mark.parametrize("name", ["none", "", "..", "../models", "*"])
def test_what_is_not_in_the_cache_cannot_be_removed(name: str, cache_folder: Path) -> None:
    path = put(cache_folder, f"{KNOWN}-v{LAYOUT}", 10)
    with pytest.raises(UnknownModel, match="cuelight models"):
        remove_model(name)
    assert path.is_dir()


def test_a_cache_that_cannot_be_changed_is_a_sentence(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(cache_folder, f"{KNOWN}-v{LAYOUT}", 10)

    def refuse(self: Path, target: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(ModelFileError, match=r"can't be removed \(Permission denied\)"):
        remove_model(DEFAULT_MODEL)
    assert path.is_dir()
    assert [one.name for one in cache_folder.iterdir()] == [path.name]


def test_the_command_fetches_and_removes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_gguf(tmp_path / "a.gguf")
    assert main(["models", "fetch", str(tmp_path / "a.gguf")]) == 0
    (model,) = cached_models()
    assert capsys.readouterr().out == f"{tmp_path / 'a.gguf'} is in {model.path}\n"
    assert main(["models", "remove", "a"]) == 0
    assert capsys.readouterr().out.startswith("removed a, ")
    assert cached_models() == []
    assert main(["models", "remove", "a"]) == 1
    assert "No model 'a' is in the cache" in capsys.readouterr().err
    assert main(["models", "remove", "acme/tiny:Q8_0"]) == 1
    assert capsys.readouterr().err.endswith("remove it with: hf cache rm model/acme/tiny\n")
