"""`cuelight models` with caches of its own: what is listed, what is told of one model, and that no hub is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cuelight.engine.weights import DEFAULT_MODEL, LAYOUT, MODELS

from ..engine.hub_cache import Hub, cache_files, run, serving
from ..engine.tiny import save_model, write_gguf

OWN = f"{DEFAULT_MODEL}-{MODELS[DEFAULT_MODEL].file_sha256[:16]}"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Caches with a model in safetensors, two GGUF files, an unknown family, and an outdated model."""
    save_model(tmp_path / "a", family="qwen3")
    (tmp_path / "a" / "tokenizer.json").write_text("{}")
    (tmp_path / "a" / "generation_config.json").write_text('{"do_sample": true, "temperature": 0.6, "top_k": 20}')
    cache_files(tmp_path, tmp_path / "a", "acme/whole")
    (tmp_path / "b").mkdir()
    write_gguf(tmp_path / "b" / "tiny-Q4_1.gguf")
    odd: Any = {"tokenizer.ggml.model": "llama"}
    write_gguf(tmp_path / "b" / "tiny-Q8_0.gguf", **odd)
    cache_files(tmp_path, tmp_path / "b", "acme/files")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "config.json").write_text('{"model_type": "gemma", "torch_dtype": "bfloat16"}')
    cache_files(tmp_path, tmp_path / "c", "acme/other")
    (tmp_path / "cache/cuelight/models" / f"{OWN}-v{LAYOUT + 1}").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """A hub that should not be asked anything."""
    (tmp_path / "served").mkdir()
    with serving(tmp_path / "served") as hub:
        yield hub
        assert hub.asked == []


def ask(home: Path, hub: Hub, *arguments: str, status: int = 0, **environment: str) -> tuple[str, str]:
    address = f"http://127.0.0.1:{hub.server_port}"
    done = run(home, "-m", "cuelight", "models", *arguments, HF_ENDPOINT=address, **environment)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def test_every_model_of_both_caches_is_listed_with_whether_it_runs(home: Path, hub: Hub) -> None:
    rows = [json.loads(line) for line in ask(home, hub, "--json")[0].splitlines()]
    assert [(row["name"], row["place"], row["state"], row["family"], row["dtype"]) for row in rows] == [
        (DEFAULT_MODEL, "cuelight", "not fetched", None, None),
        (f"{OWN}-v{LAYOUT + 1}", "cuelight", "outdated", None, None),
        ("acme/files:Q4_1", "hub", "ready", "llama", "Q4_1"),
        ("acme/files:Q8_0", "hub", "can't run", "llama", "Q4_1"),
        ("acme/other", "hub", "can't run", "gemma", "bfloat16"),
        ("acme/whole", "hub", "ready", "qwen3", "float32"),
    ]
    assert [row["default"] for row in rows] == [True] + [False] * 5
    problems = {row["name"]: row["problem"] for row in rows}
    assert problems["acme/other"] == (
        "config.json describes a 'gemma' model; this engine runs llama, mistral, qwen2, qwen3."
    )
    assert problems["acme/files:Q8_0"].startswith("tiny-Q8_0.gguf has a 'llama' tokenizer; ")
    assert problems["acme/whole"] is None
    files = home / "hub/models--acme--files/snapshots"
    sizes = {row["name"]: row["bytes"] for row in rows}
    assert sizes["acme/files:Q4_1"] == next(files.glob("*/tiny-Q4_1.gguf")).stat().st_size
    assert sizes[DEFAULT_MODEL] == 0


@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_the_table_fits_the_terminal_and_says_why_not(home: Path, hub: Hub, columns: str) -> None:
    lines = ask(home, hub, COLUMNS=columns)[0].splitlines()
    end = next(index for index, line in enumerate(lines) if line.startswith("cache "))
    assert max(map(len, lines[:end])) <= int(columns)
    text = " ".join(" ".join(lines).split())
    assert "acme/other: config.json describes a 'gemma' model; this engine runs" in text
    if columns == "200":
        assert lines[1].split() == [DEFAULT_MODEL, "(default)", "not", "fetched", "cuelight"]
        ready = next(line for line in lines if line.startswith("acme/whole"))
        assert ready.split()[:4] == ["acme/whole", "ready", "qwen3", "float32"]


def test_empty_caches_are_no_error(tmp_path: Path, hub: Hub) -> None:
    (row,) = (json.loads(line) for line in ask(tmp_path, hub, "--json")[0].splitlines())
    assert (row["name"], row["state"], row["path"]) == (DEFAULT_MODEL, "not fetched", None)


def test_half_a_model_lacks_a_file(home: Path, hub: Hub) -> None:
    next((home / "hub/models--acme--whole/snapshots").glob("*/tokenizer.json")).unlink()
    rows = [json.loads(line) for line in ask(home, hub, "--json")[0].splitlines()]
    assert rows[-1]["problem"] == "tokenizer.json is missing; fetch the model again."


def test_all_of_a_model_is_told(home: Path, hub: Hub) -> None:
    """4 layers, 2 KV heads of 16: 4 x 2 x 2 x 16 values a position."""
    about = json.loads(ask(home, hub, "show", "acme/whole", "--json")[0])
    assert about == json.loads(ask(home, hub, "--json", "show", "acme/whole")[0])
    assert (about["family"], about["dtype"], about["problem"]) == ("qwen3", "float32", None)
    assert (about["stages"], about["block_positions"]) == (5, 64)
    assert about["kv_bytes_per_position"] == {"float32": 1024, "bfloat16": 512}
    assert (about["config"]["context"], about["config"]["qk_norm"], about["config"]["eos_ids"]) == (512, True, [2])
    assert (about["temperature"], about["filters"]["top_k"], about["chat_template"]) == (0.6, 20, False)
    lines = ask(home, hub, "show", "acme/whole", COLUMNS="80")[0].splitlines()
    told = {line[:12].strip(): line[12:] for line in lines}
    assert told["can run"] == "yes"
    assert told["context"] == "512 positions"
    assert told["stages"] == "5: prefill, kv-init, 2 of 2 layers, output decode"
    assert told["KV cache"].startswith("1,024 bytes a position in float32")
    assert told["sampling"] == "temperature 0.6, top_k 20 unless told otherwise"
    assert told["path"] == about["path"]


@pytest.mark.parametrize(
    ("name", "word", "told"),
    [
        ("acme/files:Q4_1", "can run", "yes"),
        ("acme/files:q8_0", "can't run", "tiny-Q8_0.gguf has a 'llama' tokenizer"),
        ("acme/other", "can't run", "config.json describes a 'gemma' model"),
    ],
)
def test_why_a_model_cannot_be_run_is_told(name: str, word: str, told: str, home: Path, hub: Hub) -> None:
    lines = ask(home, hub, "show", name, COLUMNS="200")[0].splitlines()
    assert next(line for line in lines if line.startswith(word))[12:].startswith(told)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("acme/none", "acme/none is not on this machine; fetch it with: cuelight models fetch acme/none"),
        (
            "none",
            f"There is no model 'none'; give {DEFAULT_MODEL}, a .gguf file, a model directory or a hub's org/name.",
        ),
    ],
)
def test_what_is_not_here_is_not_shown(name: str, sentence: str, home: Path, hub: Hub) -> None:
    assert ask(home, hub, "show", name, status=1) == ("", f"cuelight: {sentence}\n")
