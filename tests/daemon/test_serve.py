"""The daemon as a process: told by its command line and by signals."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import openai
import pytest

from cuelight.cli import main

from ..host.checks import until
from .asking import chat, finishes
from .conftest import WAIT_S

SETTINGS = """
[server]
port = 0
drain_s = 20.0

[keys.alice]
key = "{key}"
"""


class Process:
    """`cuelight serve`."""

    def __init__(self, model: Path, settings: Path, *more: str) -> None:
        command = [sys.executable, "-m", "cuelight", "serve", "--model", str(model), "--settings", str(settings)]
        self._process = subprocess.Popen(
            [*command, "--kv-positions", "4096", "--threads", "1", *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.said = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        until(lambda: "http://" in self.said or self._process.poll() is not None)
        found = re.search(r"http://[\d.]+:\d+", self.said)
        assert found, self.said
        self.url = found.group()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self.said += line

    def client(self, key: str) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, timeout=WAIT_S)

    @property
    def pid(self) -> int:
        return self._process.pid

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        status = self._process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        return status

    def kill(self) -> None:
        self._process.kill()
        self.wait()


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "cuelight.toml"
    path.write_text(SETTINGS.format(key="the-first-key"))
    return path


@pytest.fixture
def process(model: Path, settings: Path) -> Iterator[Process]:
    process = Process(model, settings)
    yield process
    process.kill()


def segments() -> set[Path]:
    return set(Path("/dev/shm").glob("cuelight-*"))


def test_it_reads_settings_again_and_lets_answers_end(process: Process, model: Path, settings: Path) -> None:
    mine = {path for path in segments() if f"-{process._process.pid}-" in path.name}
    assert mine
    assert all(path.stat().st_mode & 0o077 == 0 for path in mine)
    name = str(model)
    settings.write_text(SETTINGS.format(key="the-second-key"))
    process.signal(signal.SIGHUP)
    with process.client("the-second-key") as client:
        until(lambda: _is_let_in(client))
        with process.client("the-first-key") as old, pytest.raises(openai.AuthenticationError):
            chat(old, model=name)
        stream = chat(client, model=name, stream=True, max_tokens=200, logit_bias={"2": -100})
        next(iter(stream))
        process.signal(signal.SIGTERM)
        # Nobody is let in any more, and who is in gets all of the answer.
        until(lambda: not _listens(process.url))
        assert finishes(list(stream)) == ["length"]
    assert process.wait() == 0
    assert "Traceback" not in process.said
    assert not mine & segments()


@pytest.fixture
def several(model: Path, settings: Path) -> Iterator[Process]:
    """With front ends in processes of their own."""
    process = Process(model, settings, "--front-ends", "2")
    yield process
    process.kill()


def test_front_ends_let_answers_end(several: Process, model: Path) -> None:
    children = _children(several.pid)
    mine = {path for path in segments() if f"-{several.pid}-" in path.name}
    assert all(path.stat().st_mode & 0o077 == 0 for path in mine)
    with several.client("the-first-key") as client:
        stream = chat(client, model=str(model), stream=True, max_tokens=200, logit_bias={"2": -100})
        next(iter(stream))
        several.signal(signal.SIGTERM)
        until(lambda: not _listens(several.url))
        assert finishes(list(stream)) == ["length"]
    assert several.wait() == 0
    assert "Traceback" not in several.said
    assert not mine & segments()
    assert not any(Path(f"/proc/{pid}").exists() for pid in children)


def test_front_ends_tell_that_the_core_is_dead_and_end(several: Process, model: Path) -> None:
    children = _children(several.pid)
    front_ends = [pid for pid in children if b"front_process" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert len(front_ends) == 2
    lanes = set(children) - set(front_ends)
    with several.client("the-first-key") as client, ThreadPoolExecutor(1) as pool:
        stream = chat(client, model=str(model), stream=True, max_tokens=200, logit_bias={"2": -100})
        next(iter(stream))
        # The answers must not end meanwhile.
        for lane in lanes:
            os.kill(lane, signal.SIGSTOP)
        asked = pool.submit(chat, client, model=str(model), max_tokens=4)
        until(lambda: 'running{tier="standard"} 2.0' in httpx2.get(f"{several.url}/metrics", timeout=WAIT_S).text)
        several.kill()
        with pytest.raises(openai.APIError, match="The daemon's core has died; start the daemon again"):
            list(stream)
        with pytest.raises(openai.InternalServerError, match="The daemon's core has died") as refused:
            asked.result(WAIT_S)
        assert refused.value.status_code == 503
    for lane in lanes:
        os.kill(lane, signal.SIGCONT)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children))
    left = [path for path in segments() if f"-{several.pid}-" in path.name]
    assert not [path for path in left if "metrics" in path.name]
    for path in left:
        path.unlink()


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def _is_let_in(client: openai.OpenAI) -> bool:
    try:
        client.models.list()
    except openai.AuthenticationError:
        return False
    return True


def _listens(url: str) -> bool:
    try:
        httpx2.get(f"{url}/version", timeout=WAIT_S)
    except httpx2.ConnectError:
        return False
    return True


def test_what_can_not_be_is_told_before_a_model_is_loaded(settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", "--model", "no such model", "--port", port]) == 1
        assert capsys.readouterr().err == (
            f"cuelight: The daemon can't listen at 127.0.0.1 port {port} (Address already in use); choose another.\n"
        )
    settings.write_text("[servre]")
    assert main(["serve", "--model", "no such model", "--settings", str(settings)]) == 1
    assert "there is no setting servre; take it out, or correct its name." in capsys.readouterr().err
    assert main(["serve", "--model", "no such model", "--host", "0.0.0.0"]) == 1
    assert "lets other machines in, and no API key keeps anybody out; add keys." in capsys.readouterr().err
