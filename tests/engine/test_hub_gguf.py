"""Repositories of the hub that hold GGUF files: which one a name stands for, in the cache and on a hub."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuelight.engine.config import load_config
from cuelight.engine.hub_files import choose_gguf, models_of
from cuelight.errors import UnknownModel

from .hub_cache import NAME, cache_files, resolve, serving
from .tiny import save_model, write_gguf

REPOSITORY = [
    "README.md",
    "config.json",
    "mmproj-model-f16.gguf",
    "tiny-Q4_K_M.gguf",
    "tiny-f16.gguf",
    "tiny-q8_0.gguf",
    "tiny.imatrix.gguf",
    "whole/tiny-BF16-00001-of-00002.gguf",
]


def put(folder: Path, *names: str) -> Path:
    for seed, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_gguf(folder / name, seed, **{"llama.context_length": 128 + seed})
    return folder


@pytest.mark.parametrize(
    ("files", "selector", "chosen"),
    [
        (["a.gguf"], None, "a.gguf"),
        (["a.gguf", "mmproj-a.gguf", "README.md"], None, "a.gguf"),
        (REPOSITORY, None, "tiny-q8_0.gguf"),
        (REPOSITORY, "Q4_K_M", "tiny-Q4_K_M.gguf"),
        (REPOSITORY, "q4_k_m", "tiny-Q4_K_M.gguf"),
        (REPOSITORY, "F16", "tiny-f16.gguf"),
        (REPOSITORY, "tiny-f16", "tiny-f16.gguf"),
        (REPOSITORY, "tiny-f16.gguf", "tiny-f16.gguf"),
        (REPOSITORY, "Q5_0", None),
        (REPOSITORY, "mmproj-model-f16.gguf", None),
        (REPOSITORY, "BF16", None),
        (["a-UD-Q4_K_XL.gguf", "a-Q4_K_XL.gguf"], "Q4_K_XL", "a-Q4_K_XL.gguf"),
        (["a-UD-Q4_K_XL.gguf", "a-Q4_K_XL.gguf"], "UD-Q4_K_XL", "a-UD-Q4_K_XL.gguf"),
        (["README.md"], None, None),
        ([], "Q8_0", None),
    ],
)
def test_a_file_is_chosen_by_rule(files: list[str], selector: str | None, chosen: str | None) -> None:
    assert choose_gguf(NAME, files, selector) == chosen


@pytest.mark.parametrize(
    ("files", "selector", "named"),
    [
        (["a-Q4_0.gguf", "a-Q5_0.gguf"], None, [f"{NAME}:Q4_0", f"{NAME}:Q5_0"]),
        (["a-Q8_0.gguf", "b-Q8_0.gguf"], None, [f"{NAME}:a-Q8_0.gguf", f"{NAME}:b-Q8_0.gguf"]),
        (["a-Q8_0.gguf", "b-Q8_0.gguf", "b-F16.gguf"], "q8_0", [f"{NAME}:a-Q8_0.gguf", f"{NAME}:b-Q8_0.gguf"]),
        (["first.gguf", "a-Q4_1.gguf"], None, [f"{NAME}:Q4_1", f"{NAME}:first.gguf"]),
    ],
)
def test_several_that_fit_are_listed_as_they_may_be_named(
    files: list[str], selector: str | None, named: list[str]
) -> None:
    with pytest.raises(UnknownModel) as refusal:
        choose_gguf(NAME, files, selector)
    assert str(refusal.value) == f"{NAME} has several GGUF files; name one of them: {', '.join(named)}."
    for name in named:
        assert choose_gguf(NAME, files, name.partition(":")[2]) in files


def test_every_name_leads_to_its_file() -> None:
    names = models_of(NAME, REPOSITORY)
    assert list(names.values()) == [f"{NAME}:Q4_K_M", f"{NAME}:F16", f"{NAME}:Q8_0"]
    assert [choose_gguf(NAME, REPOSITORY, name.partition(":")[2]) for name in names.values()] == list(names)


@pytest.mark.parametrize("offline", ["1", "0"])
def test_a_cached_file_is_converted_without_a_network(offline: str, tmp_path: Path) -> None:
    cache_files(tmp_path, put(tmp_path / "plain", "tiny-q4_1.gguf"))
    folder = Path(resolve(NAME, tmp_path, HF_HUB_OFFLINE=offline))
    assert load_config(folder).context == 128
    assert folder.name.startswith("tiny-q4_1-")
    for selector in ("Q4_1", "tiny-q4_1", "tiny-q4_1.gguf"):
        assert resolve(f"{NAME}:{selector}", tmp_path, HF_HUB_OFFLINE=offline) == str(folder)


def test_of_several_cached_files_one_must_be_named(tmp_path: Path) -> None:
    cache_files(tmp_path, put(tmp_path / "plain", "tiny-Q4_1.gguf", "more/tiny-Q5_0.gguf"))
    assert resolve(NAME, tmp_path) == (
        f"UnknownModel: {NAME} has several GGUF files; name one of them: {NAME}:Q5_0, {NAME}:Q4_1."
    )
    assert load_config(Path(resolve(f"{NAME}:Q5_0", tmp_path))).context == 129
    said = resolve(f"{NAME}:Q6_K", tmp_path, HF_HUB_OFFLINE="1")
    assert said.startswith(f"DownloadError: The model {NAME}:Q6_K is not in the cache ")


def test_safetensors_go_before_gguf_unless_it_is_named(tmp_path: Path) -> None:
    save_model(put(tmp_path / "plain", "tiny-Q8_0.gguf"))
    (tmp_path / "plain" / "tokenizer.json").write_text("{}")
    snapshot = cache_files(tmp_path, tmp_path / "plain")
    assert resolve(NAME, tmp_path) == str(snapshot)
    assert load_config(Path(resolve(f"{NAME}:Q8_0", tmp_path))).context == 128


def test_only_the_file_that_is_meant_is_fetched_and_once(tmp_path: Path) -> None:
    put(tmp_path / "served", "tiny-Q4_1.gguf", "tiny-Q8_0.gguf", "tiny-Q5_0.gguf")
    home = tmp_path / "home"
    with serving(tmp_path / "served") as hub:
        address = f"http://127.0.0.1:{hub.server_port}"
        assert load_config(Path(resolve(NAME, home, HF_ENDPOINT=address))).context == 129
        assert [file.name for file in home.glob("hub/models--acme--tiny-llama/snapshots/*/*")] == ["tiny-Q8_0.gguf"]
        assert load_config(Path(resolve(f"{NAME}:Q4_1", home, HF_ENDPOINT=address))).context == 128
        hub.asked.clear()
        assert load_config(Path(resolve(f"{NAME}:tiny-Q4_1", home, HF_ENDPOINT=address))).context == 128
        assert load_config(Path(resolve(NAME, home, HF_ENDPOINT=address))).context == 129
        assert hub.asked == []
        said = resolve(f"{NAME}:Q6_K", home, HF_ENDPOINT=address)
        names = ", ".join(f"{NAME}:{kind}" for kind in ("Q4_1", "Q5_0", "Q8_0"))
        assert said == f"UnknownModel: The hub's {NAME} has no GGUF file 'Q6_K'; it has {names}."
        (tmp_path / "served" / "tiny-Q8_0.gguf").rename(tmp_path / "served" / "tiny-Q6_K.gguf")
        said = resolve(NAME, tmp_path / "other", HF_ENDPOINT=address)
        assert said.startswith(f"UnknownModel: {NAME} has several GGUF files; name one of them: {NAME}:Q4_1, ")
