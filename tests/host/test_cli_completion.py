"""What shells complete: asked of the shells themselves."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cuelight.cli import main
from cuelight.cli.arguments import build_parser
from cuelight.cli.completion import Command, _walk
from cuelight.engine.weights import DEFAULT_MODEL

COMMANDS = ["generate", "demo", "serve", "status", "top", "models", "trace", "doctor", "completion"]
CASES = [
    ("", COMMANDS),
    ("gen", ["generate"]),
    ("status --w", ["--watch"]),
    ("generate --ti", ["--tier", "--timeout"]),
    ("generate --tier ", ["vip", "standard", "best-effort"]),
    ("generate --json --tier v", ["vip"]),
    ("generate --top", ["--top-k", "--top-p", "--top-logprobs"]),
    ("generate --dtype ", ["float32", "bfloat16"]),
    ("demo --dtype b", ["bfloat16"]),
    ("generate --logit-bias ", []),
    ("generate hello --dev", ["--device"]),
    ("models ", ["show", "fetch", "remove"]),
    ("models remove sm", [DEFAULT_MODEL]),
    ("completion ", ["bash", "zsh", "fish"]),
    ("trace ru", ["run two.json", "runs"]),
    ("generate --seed ", []),
    ("generate --file run\\ ", ["run two.json"]),
    ("demo --out ru", ["runs"]),
]


@pytest.fixture
def script(request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A shell's script, in a folder with a file and a folder."""
    shell = request.param
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert main(["completion", shell]) == 0
    path = tmp_path / f"script.{shell}"
    path.write_text(capsys.readouterr().out)
    (tmp_path / "run two.json").touch()
    (tmp_path / "runs").mkdir()
    return path


def ask(shell: str, program: str, folder: Path) -> list[str]:
    done = subprocess.run([shell, "-c", program], capture_output=True, text=True, timeout=60, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("script", ["bash"], indirect=True)
@pytest.mark.parametrize(("line", "expected"), [*CASES, ("generate --tier = v", ["vip"])])
def test_bash(script: Path, line: str, expected: list[str]) -> None:
    words = line.replace("\\ ", "\0").split(" ")
    quoted = " ".join(f"'{word}'" for word in words).replace("\0", " ")
    program = (
        f"source {script.name}; COMP_WORDS=(cuelight {quoted}); COMP_CWORD={len(words)}; _cuelight; "
        'for word in "${COMPREPLY[@]}"; do printf "%s\\n" "$word"; done'
    )
    assert ask("bash", program, script.parent) == expected


@pytest.mark.parametrize("script", ["fish"], indirect=True)
@pytest.mark.parametrize(("line", "expected"), CASES)
def test_fish(script: Path, line: str, expected: list[str]) -> None:
    said = ask("fish", f"source {script.name}; complete -C 'cuelight {line}'", script.parent)
    found = {re.sub(r"\\(.)", r"\1", one.partition("\t")[0]).rstrip("/") for one in said}
    assert set(expected) <= found
    assert found - set(expected) <= {"script.fish"} | ({"run two.json"} if "--out" in line else set())


@pytest.mark.parametrize("script", ["zsh"], indirect=True)
def test_zsh_takes_the_script(script: Path) -> None:
    """Every command has its function."""
    said = ask(
        "zsh", f"autoload -U compinit; compinit -D; source {script.name}; print -l ${{(k)functions}}", script.parent
    )
    wanted = {"_".join(("_cuelight", *command.words)) for command in _walk(build_parser(), ())}
    assert wanted <= set(said)


def test_every_option_and_argument_has_a_help() -> None:
    commands: list[Command] = list(_walk(build_parser(), ()))
    assert {command.words for command in commands} >= {(name,) for name in COMMANDS} | {("models", "fetch")}
    assert all(slot.help and slot.help != argparse.SUPPRESS for command in commands for slot in command.slots)
    assert all(text for command in commands for _, text in command.commands)
