"""Where prompts come from, and what they are called."""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import pytest

from cuelight.cli.arguments import parse_arguments
from cuelight.cli.prompts import Prompt, read_prompts


def read(*arguments: str) -> list[Prompt]:
    parsed: argparse.Namespace = parse_arguments(["generate", *arguments])
    return read_prompts(parsed)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO("from\nstdin\n\n"))
    Path("a.txt").write_text("first\n\nthird\n")


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        ([], ["from\nstdin\n"]),
        (["-"], ["from\nstdin\n"]),
        (["one", "two\nlines"], ["one", "two\nlines"]),
        (["one", "-f", "a.txt"], ["one", "first\n\nthird"]),
        (["-f", "a.txt", "-f", "-"], ["first\n\nthird", "from\nstdin\n"]),
        (["--lines"], ["from", "stdin"]),
        (["--lines", "one"], ["one", "from", "stdin"]),
        (["--lines", "-", "one"], ["from", "stdin", "one"]),
        (["--lines", "-f", "a.txt"], ["first", "third"]),
    ],
)
def test_prompts_come_in_the_order_of_the_help(arguments: list[str], texts: list[str]) -> None:
    assert [prompt.text for prompt in read(*arguments)] == texts


def test_a_chat_has_its_system_message_and_a_raw_prompt_has_none() -> None:
    (chat,) = read("hello", "--system", "Be brief.")
    assert chat.content == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}]
    (raw,) = read("hello", "--raw")
    assert raw.content == "hello"


def test_titles_keep_what_tells_prompts_apart() -> None:
    """The beginning of words, the end of a path."""
    words = "word " * 30
    path = Path("folder" * 5, "folder" * 8)
    path.mkdir(parents=True)
    (path / "b.txt").write_text("one\ntwo\n")
    titles = [prompt.title for prompt in read(words, "short", "--lines", "-f", str(path / "b.txt"))]
    assert titles[0].startswith("word word")
    assert titles[0].endswith("…")
    assert titles[1] == "short"
    assert titles[3].startswith("…")
    assert titles[3].endswith("/b.txt:2")
    assert all(len(title) <= 60 for title in titles)
