"""What is said of models that are whole, and of ones whose files are garbled in any one place."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from cuelight.engine.config import load_config
from cuelight.engine.convert import convert
from cuelight.engine.describe import describe, parameter_count

from .tiny import save_model, write_gguf

JUNK: list[Any] = [None, "x", "", [], [None], {}, {"a": 1}, -1, 0, 1.5, math.inf, math.nan, True, 1 << 70]
ROPE = {
    "rope_type": "llama3",
    "rope_theta": 10_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
SETTINGS = {"do_sample": True, "temperature": 0.7, "top_k": 20, "top_p": 0.8, "eos_token_id": [2, 3]}
TOKENIZER = {"added_tokens": [{"id": 4, "content": "<|im_end|>"}]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_model(tmp_path, rope_parameters=ROPE)
    (tmp_path / "generation_config.json").write_text(json.dumps(SETTINGS))
    (tmp_path / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}", "bos_token": "a"}))
    return tmp_path


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_a_gguf_file_is_what_it_will_be_converted_to(family: str, tmp_path: Path) -> None:
    fields: Any = {"general.architecture": family, "tokenizer.chat_template": "{{ messages }}"}
    write_gguf(tmp_path / "tiny.gguf", **fields)
    (tmp_path / "converted").mkdir()
    convert(tmp_path / "tiny.gguf", tmp_path / "converted")
    before, after = describe(tmp_path / "tiny.gguf"), describe(tmp_path / "converted")
    assert (before.family, before.dtype, before.problem, after.problem) == (family, "Q4_1", None, None)
    assert before.has_template
    assert after.has_template
    assert before.config == after.config == load_config(tmp_path / "converted")


@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2", "qwen3"])
@pytest.mark.parametrize("tied", [True, False])
def test_parameters_are_counted_as_transformers_does(family: str, tied: bool, tmp_path: Path) -> None:
    model = save_model(tmp_path, family=family, tie_word_embeddings=tied)
    assert parameter_count(load_config(tmp_path)) == model.num_parameters()


def test_a_whole_folder_has_no_problem(folder: Path) -> None:
    about = describe(folder)
    assert (about.problem, about.has_template, about.defaults.temperature) == (None, True, 0.7)
    assert about.config is not None
    assert about.config.eos_ids == {2, 3, 4}


@pytest.mark.parametrize("file", ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"])
def test_any_garbled_field_is_at_most_a_problem(file: str, folder: Path) -> None:
    """A sentence with the file's name, never an exception; at every depth."""
    path = folder / file
    whole = json.loads(path.read_text())
    problems = set()
    for place in places(whole):
        for junk in JUNK:
            path.write_text(json.dumps(replaced(whole, place, junk)))
            if problem := describe(folder).problem:
                problems.add(problem)
    path.write_bytes(b"\xff\xfe{")
    problems.add(describe(folder).problem or "")
    assert all(problem.startswith(file) and problem.endswith(".") for problem in problems)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"{{ messages"])
def test_a_garbled_template_is_a_problem_or_none(content: bytes, folder: Path) -> None:
    (folder / "chat_template.jinja").write_bytes(content)
    about = describe(folder)
    assert about.problem is None
    assert about.has_template == (content == b"")


def places(value: Any, *above: Any) -> list[tuple[Any, ...]]:
    """Where in a JSON value there is something, outermost last."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, one in inner for place in (*places(one, *above, key), (*above, key))]


def replaced(value: Any, place: tuple[Any, ...], junk: Any) -> Any:
    copy = json.loads(json.dumps(value))
    target = copy
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = junk
    return copy
