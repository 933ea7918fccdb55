"""Commands that run the default model: text, figures, picture and trace of real runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuelight.cli import main
from cuelight.recording import Recording
from cuelight.regmap import RetireReason

TOKENS = 16


def test_demo_shows_three_chats_that_share_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Text of each, a row of figures for each, a picture, and a trace that agrees with both."""
    assert main(["demo", "--max-new-tokens", str(TOKENS), "--out", str(tmp_path / "runs")]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name in "ABC":
        assert any(line.startswith(f"{name} | ") for line in lines)
        figures = next(line.split() for line in lines if line.startswith(f"{name}  "))
        assert figures[2] == str(TOKENS)
    assert (tmp_path / "runs/demo.png").stat().st_size > 10_000
    timeline = Recording.load(tmp_path / "runs/demo.json").timeline()
    last = timeline.stage_count - 1
    for row in timeline.requests:
        assert row.reason is RetireReason.FINISHED
        assert sum(bar.stage == last for bar in row.bars) == TOKENS
    assert len(timeline.requests) == 3
    assert any(one.decode_rows and one.chunks for one in timeline.passes)


def test_generate_streams_what_json_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same greedy text; the object has its tokens and times; the trace has its passes."""
    prompt = ["Name three colours.", "--max-new-tokens", str(TOKENS)]
    assert main(["generate", *prompt, "--trace", str(tmp_path / "run.json")]) == 0
    text = capsys.readouterr().out
    assert main(["generate", *prompt, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["text"] + "\n" == text
    assert len(answer["tokens"]) == len(answer["logprobs"]) == answer["new_tokens"] <= TOKENS
    assert answer["finish"] in ("length", "end_of_text")
    assert answer["ttft_s"] > 0
    (row,) = Recording.load(tmp_path / "run.json").timeline().requests
    assert len({bar.pass_number for bar in row.bars}) == answer["new_tokens"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--max-new-tokens", "100000"], "exceed the context of"),
        (["--tier", "9"], "Tier 9 does not exist"),
        (["--seed", str(1 << 64), "--temperature", "1"], "64 bits"),
    ],
)
def test_what_the_model_or_device_cannot_do_is_a_sentence(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 1, cause and remedy, nothing on standard output."""
    assert main(["generate", "Hello.", *arguments]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err.splitlines()[-1]
    assert "Traceback" not in captured.err
