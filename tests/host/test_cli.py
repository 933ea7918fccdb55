"""The command line, as a user and as a script meet it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cuelight.cli import main
from cuelight.errors import DeviceFull

from .recorded_run import FIRST, SECOND, record_run

EMPTY = "The prompt from /dev/null is empty; give one as an argument, in a file or on standard input."


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    path = tmp_path / "run.json"
    record_run().save(path)
    return path


def test_trace_prints_a_line_for_each_event(run_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In order, with the fields by name."""
    assert main(["trace", str(run_file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(record_run().events)
    first, last = (" ".join(lines[index].split()) for index in (0, -1))
    assert first == "0.0000 ms ADMIT lane 0 0x00010000 page 0 automatic 1 tier 2 kv_blocks 3"
    assert last == "13.0000 ms RETIRE lane 0 0x00010000 reason 1 seat 0 unseated 0"


def test_trace_as_json_is_an_object_a_line(run_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """So that jq and friends take it."""
    assert main(["trace", str(run_file), "--json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert events == [event.to_dict() for event in record_run().events]


def test_trace_summary_counts_tokens_and_times_the_first(run_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Six stages until the first request's first token."""
    assert main(["trace", str(run_file), "--summary", "--json"]) == 0
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert first == {
        "id": FIRST,
        "label": "the first",
        "lane": 0,
        "tier": 2,
        "passes": 4,
        "prompt_rows": 264,
        "tokens": 3,
        "first_token_ms": 6.0,
        "end": "finished",
    }
    assert (second["id"], second["tokens"], second["prompt_rows"], second["end"]) == (SECOND, 2, 12, None)


def test_trace_draws(run_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And says where."""
    picture = tmp_path / "run.png"
    assert main(["trace", str(run_file), "--png", str(picture)]) == 0
    assert picture.stat().st_size > 10_000
    assert capsys.readouterr().out == f"wrote {picture}\n"


def test_status_of_the_twin(capsys: pytest.CaptureFixture[str]) -> None:
    """As an object: what a script would look at."""
    assert main(["status", "--device", "twin", "--json"]) == 0
    seen = json.loads(capsys.readouterr().out)
    status = seen["status"]
    assert (seen["device"], status["slots"], status["active"]) == ("twin", 1024, 0)
    assert len(status["rtl_hash"]) == 32
    assert [lane["sequence"] for lane in status["lanes"]] == [1, 1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            [],
            "Name a command: generate, demo, serve, status, top, models, trace, doctor, completion; "
            "see cuelight --help.",
        ),
        (["genrate"], "There is no command 'genrate', did you mean 'generate'; see cuelight --help."),
        (["trace"], "The following arguments are required: FILE; see cuelight trace --help."),
        (
            ["generate", "--tier", "high"],
            "Argument --tier: 'high' is no tier, there are vip, standard, best-effort and 0 to 3; "
            "see cuelight generate --help.",
        ),
        (
            ["generate", "--trace", "no/such/folder/run.json", "hello"],
            "Argument --trace: 'no/such/folder/run.json' can't be written, name another file; "
            "see cuelight generate --help.",
        ),
        (
            ["generate", "--temperature", "nan"],
            "Argument --temperature: 'nan' is no number of at least 0; see cuelight generate --help.",
        ),
        (
            ["generate", "--top-p", "1.5"],
            "Argument --top-p: top_p must be above 0 and at most 1, not 1.5; see cuelight generate --help.",
        ),
        (
            ["generate", "--top-k", "0.5"],
            "Argument --top-k: '0.5' is no whole number of at least 0; see cuelight generate --help.",
        ),
        (
            ["generate", "--min-p", "some"],
            "Argument --min-p: 'some' is no number; see cuelight generate --help.",
        ),
        (
            ["generate", "--presence-penalty=-3"],
            "Argument --presence-penalty: presence_penalty must be -2 to 2, not -3.0; see cuelight generate --help.",
        ),
        (
            ["generate", "--logit-bias", "blue"],
            "Argument --logit-bias: 'blue' is no TOKEN=BIAS, write it like ' blue=-5' or 4183=-5; "
            "see cuelight generate --help.",
        ),
        (
            ["generate", "--logit-bias", " blue=101"],
            "Argument --logit-bias: logit_bias of ' blue' must be -100 to 100, not 101.0; "
            "see cuelight generate --help.",
        ),
        (
            ["generate", "--top-logprobs", "21"],
            "Argument --top-logprobs: top_logprobs must be 0 to 20, not 21; see cuelight generate --help.",
        ),
        (
            ["demo", "--dtype", "float16"],
            "There is no dtype 'float16', did you mean 'bfloat16'; see cuelight demo --help.",
        ),
    ],
)
def test_a_wrong_call_ends_in_a_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 2, nothing on standard output."""
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert capsys.readouterr() == ("", f"cuelight: {sentence}\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["trace", "none.json"],
            "none.json can't be read (No such file or directory); name a trace that cuelight wrote.",
        ),
        (
            ["status", "--device", "abacus"],
            "There is no device 'abacus'; this version knows 'twin' and 'pcie:0000:65:00.0'.",
        ),
        (
            ["generate", "--model", "gpt-none", "hello"],
            "There is no model 'gpt-none'; "
            "give smollm2-135m-instruct, a .gguf file, a model directory or a hub's org/name.",
        ),
        (["generate", " "], "The prompt is empty; give one as an argument, in a file or on standard input."),
        (["generate", "-f", "none.txt"], "none.txt can't be read (No such file or directory); name a text file."),
        (["generate", "-f", "/dev/null"], EMPTY),
        (["generate", "--lines", "-f", "/dev/null"], "/dev/null has no line with a prompt; write one a line."),
        (["generate", "-f", "/usr/bin/env"], "/usr/bin/env is no text in UTF-8 (byte 24); name a text file."),
        (
            ["generate", "--raw", "--system", "Be brief.", "hello"],
            "--raw takes the prompt as it stands and so no --system; leave one of them out.",
        ),
    ],
)
def test_an_error_is_a_sentence_with_a_remedy(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 1, no traceback, nothing on standard output."""
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines()[-1] == f"cuelight: {sentence}"
    assert "Traceback" not in captured.err


def test_an_error_of_the_package_is_told_and_any_other_is_not_hidden(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bug of ours must show with its traceback."""
    import cuelight.device

    def refuse(uri: str, **_: object) -> None:
        raise DeviceFull("All 4 slots are in use; cancel one.")

    monkeypatch.setattr(cuelight.device.Device, "open", refuse)
    assert main(["status", "--device", "twin"]) == 1
    assert capsys.readouterr().err.endswith("cuelight: All 4 slots are in use; cancel one.\n")

    def fail(uri: str, **_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(cuelight.device.Device, "open", fail)
    with pytest.raises(ZeroDivisionError):
        main(["status", "--device", "twin"])


@pytest.mark.parametrize(
    "command", ["", "generate", "demo", "status", "top", "models", "models fetch", "trace", "doctor", "completion"]
)
@pytest.mark.parametrize("columns", [60, 80, 200])
def test_help_fits_the_terminal_and_is_no_wider(
    command: str, columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Filled to its width, 96 at most; examples alone stay as they are."""
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit, match="0"):
        main([*command.split(), "--help"])
    said, errors = capsys.readouterr()
    assert errors == ""
    assert said.startswith(f"usage: cuelight {command}".rstrip())
    filled = [line for line in said.splitlines() if not line.startswith("  ") or line.startswith("      ")]
    assert max(map(len, filled)) <= min(columns, 96)


def test_an_interrupt_ends_without_a_word(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C is no error; shells expect 130."""
    import cuelight.device

    def interrupt(uri: str, **_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cuelight.device.Device, "open", interrupt)
    assert main(["status", "--device", "twin"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch, run_file: Path) -> None:
    """A thin installation that is asked for a picture."""
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from cuelight.cli import main\n"
        f"sys.exit(main(['trace', {str(run_file)!r}, '--png', 'x.png']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("cuelight: This needs the package matplotlib")
    assert done.stderr.endswith("install it with: pip install 'cuelight[serve]'.\n")


def test_a_reader_that_has_seen_enough_is_no_error(run_file: Path) -> None:
    """`cuelight trace … | head -1`."""
    trace = subprocess.Popen(
        [sys.executable, "-m", "cuelight", "trace", str(run_file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert trace.stdout
    assert trace.stderr
    trace.stdout.close()
    assert trace.wait(timeout=60) == 0
    assert trace.stderr.read() == b""
    trace.stderr.close()


def test_status_and_trace_need_no_model_packages(run_file: Path) -> None:
    """torch, tokenizers and matplotlib stay out."""
    code = (
        "import sys\n"
        "for name in ('torch', 'tokenizers', 'gguf', 'jinja2', 'matplotlib', 'safetensors'): sys.modules[name] = None\n"
        "from cuelight.cli import main\n"
        f"sys.exit(main(['trace', {str(run_file)!r}]) or main(['status', '--device', 'twin']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
