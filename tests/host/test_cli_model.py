"""Commands that run the default model: text, figures, picture and trace of real runs."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

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


def test_several_prompts_are_answered_at_once_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each as it would be alone, whatever comes first; headings on standard output, figures on standard error."""
    monkeypatch.chdir(tmp_path)
    Path("questions.txt").write_text("Name a fruit.\n\nName a bird.\n")
    monkeypatch.setattr("sys.stdin", io.StringIO("Name a tree."))
    run = ["generate", "Name three colours.", "-", "--lines", "-f", "questions.txt"]
    limits = ["--max-new-tokens", "6", "--tier", "best-effort"]
    assert main([*run, *limits, "--json", "--trace", "run.json"]) == 0
    captured = capsys.readouterr()
    answers = [json.loads(line) for line in captured.out.splitlines()]
    sources = ["Name three colours.", "standard input:1", "questions.txt:1", "questions.txt:3"]
    assert [(one["index"], one["source"]) for one in answers] == list(enumerate(sources))
    assert {one["tier"] for one in answers} == {3}
    assert re.search(r"^4 answers, \d+ tokens in", captured.err, re.MULTILINE)
    recording = Recording.load(Path("run.json"))
    assert sorted(recording.labels.values()) == sorted(sources)
    assert any(one.decode_rows > 1 for one in recording.timeline().passes)

    monkeypatch.setattr("sys.stdin", io.StringIO("Name a tree.\n"))
    assert main([*run, *limits]) == 0
    expected = [f"==> {one['index'] + 1}: {one['source']} <==\n{one['text']}\n" for one in answers]
    assert capsys.readouterr().out == "\n".join(expected)


def test_a_prompt_that_fails_leaves_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its reason is told, its object has it too, and the status is 1."""
    long = tmp_path / "long.txt"
    long.write_text("and " * 9000)
    assert main(["generate", "Hello.", "-f", str(long), "--json", "--max-new-tokens", "4"]) == 1
    captured = capsys.readouterr()
    first, second = (json.loads(line) for line in captured.out.splitlines())
    assert first["new_tokens"] <= 4
    assert "exceed the context" in second["error"]
    told = captured.err.splitlines()
    assert f"cuelight: {long}: {second['error']}" in told
    assert told[-1] == "cuelight: 1 of 2 prompts have no whole answer; see why above."


def test_sampling_options_reach_the_lane(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The likeliest beside each token; a ban that holds; hot is not greedy, unless a top-k of 1 makes it so."""
    prompt = ["abc", "--raw", "--model", str(model), "--max-new-tokens", "6", "--json"]

    def answer(*options: str) -> dict[str, Any]:
        assert main(["generate", *prompt, *options]) == 0
        return dict(json.loads(capsys.readouterr().out))

    plain = answer("--top-logprobs", "3")
    for token, logprob, places in zip(plain["tokens"], plain["logprobs"], plain["top_logprobs"], strict=True):
        assert places[0]["token"] == token
        assert places[0]["logprob"] == pytest.approx(logprob, abs=1e-5)
        assert len(places) == 3
    assert plain["text"].startswith("".join(place[0]["text"] for place in plain["top_logprobs"][:3]))
    first = plain["top_logprobs"][0]
    banned = answer("--logit-bias", f"{first[0]['token']}=-100")
    assert banned["tokens"][0] == first[1]["token"]
    assert "top_logprobs" not in banned
    hot = answer("--temperature", "9", "--seed", "5")
    assert answer("--temperature", "9", "--seed", "5", "--top-k", "1")["tokens"] == plain["tokens"] != hot["tokens"]


def test_the_likeliest_are_shown_below_each_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """And a word on standard error where an option changes nothing."""
    run = ["generate", "Name a fruit.", "Name a bird.", "--max-new-tokens", "3", "--top-logprobs", "2"]
    assert main([*run, "--top-k", "5", "--dtype", "bfloat16"]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    heads = [index for index, line in enumerate(lines) if line.startswith("token ")]
    assert len(heads) == 2
    for head in heads:
        for line in lines[head + 1 : head + 4]:
            assert re.fullmatch(r'(".+" +[\d.]+%) +\1   ".+" [\d.<]+%', line)
    said = "cuelight: The likeliest token is taken each time; add --temperature for --top-k to matter."
    assert said in captured.err.splitlines()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--logit-bias", "three colours=1"], "is 2 tokens of the model"),
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
