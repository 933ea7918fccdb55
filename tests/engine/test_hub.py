"""Models by hub name, from a cache laid out as huggingface_hub lays it out; or a hub on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cuelight.engine.hub import is_hub_name

from .tiny import save_model

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAME = "acme/tiny-llama"


def cache_model(home: Path, *, sharded: bool = False) -> Path:
    """Put a model in a hub cache: blobs, a snapshot of links to them, and a ref; returns the snapshot."""
    repository = home / "hub" / f"models--{NAME.replace('/', '--')}"
    snapshot = repository / "snapshots" / COMMIT
    for folder in (repository / "blobs", repository / "refs", snapshot):
        folder.mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    plain = home / "plain"
    model = save_model(plain)
    if sharded:
        (plain / "model.safetensors").unlink()
        model.save_pretrained(plain, max_shard_size="100KB")
    (plain / "tokenizer.json").write_text("{}")
    for number, file in enumerate(sorted(plain.iterdir())):
        blob = repository / "blobs" / f"{number:040x}"
        file.rename(blob)
        (snapshot / file.name).symlink_to(os.path.relpath(blob, snapshot))
    return snapshot


def resolve(name: str, home: Path, **environment: str) -> str:
    """What `resolve` says in a process of its own: huggingface_hub reads the environment when it is imported."""
    program = (
        "import sys\n"
        "from cuelight.engine.weights import resolve\n"
        "from cuelight.errors import CuelightError\n"
        "try:\n"
        "    print(resolve(sys.argv[1]))\n"
        "except CuelightError as error:\n"
        "    print(type(error).__name__, error, sep=': ')\n"
    )
    clean = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    run = subprocess.run(
        [sys.executable, "-c", program, name],
        env=clean | {"HF_HOME": str(home), "HF_ENDPOINT": "http://127.0.0.1:9"} | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return run.stdout.rstrip("\n")


@pytest.mark.parametrize("offline", ["1", "0"])
@pytest.mark.parametrize("sharded", [False, True])
def test_cached_model_is_found_without_a_network(offline: str, sharded: bool, tmp_path: Path) -> None:
    snapshot = cache_model(tmp_path, sharded=sharded)
    assert resolve(NAME, tmp_path, HF_HUB_OFFLINE=offline) == str(snapshot)


@pytest.mark.parametrize("missing", ["config.json", "tokenizer.json", "model-00002-of-"])
def test_half_a_model_in_the_cache_is_none(missing: str, tmp_path: Path) -> None:
    snapshot = cache_model(tmp_path, sharded=True)
    file = next(file for file in snapshot.iterdir() if file.name.startswith(missing))
    file.unlink()
    said = resolve(NAME, tmp_path, HF_HUB_OFFLINE="1")
    assert said.startswith(f"DownloadError: The model {NAME} ")
    assert said.endswith("fetch the model while online.")


def test_model_that_is_not_cached_is_refused_offline(tmp_path: Path) -> None:
    said = resolve("acme/other", tmp_path, HF_HUB_OFFLINE="1")
    assert said == (
        f"DownloadError: The model acme/other is not in the cache {tmp_path / 'hub'} and HF_HUB_OFFLINE is set; "
        "unset it, or fetch the model while online."
    )


def test_hub_that_cannot_be_reached_is_a_sentence(tmp_path: Path) -> None:
    said = resolve("acme/other", tmp_path)
    assert said.startswith("DownloadError: The model acme/other is not in the cache and could not be fetched (")
    assert said.endswith("); check the network and try again.")
    assert "\n" not in said


def test_path_goes_before_hub_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache_model(tmp_path)
    monkeypatch.chdir(tmp_path)
    save_model(tmp_path / NAME)
    assert resolve(NAME, tmp_path) == NAME


@pytest.mark.parametrize(
    ("name", "is_name"),
    [
        ("Qwen/Qwen2.5-0.5B-Instruct", True),
        ("meta-llama/Llama-3.2-1B", True),
        ("smollm", False),
        ("/a/b", False),
        ("./a/b", False),
        ("a/b/c", False),
        ("../b", False),
        ("a/..", False),
        ("a/b c", False),
        ("~/b", False),
        ("", False),
    ],
)
def test_names_of_the_hub_are_told_from_paths(name: str, is_name: bool) -> None:
    assert is_hub_name(name) is is_name


@pytest.mark.parametrize("name", ["folder/model.gguf", "a/b/c", "acme/odd--name"])
def test_what_is_neither_path_nor_hub_name_is_refused(name: str, tmp_path: Path) -> None:
    said = resolve(name, tmp_path, HF_HUB_OFFLINE="1")
    assert said.startswith("UnknownModel: ")
    assert said.endswith(".")


class Hub(ThreadingHTTPServer):
    """As much of a hub as a download of a public model needs, and one that is closed to others."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), HubPages)
        self.folder = folder
        self.asked: list[str] = []


class HubPages(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        path = self.path.split("?")[0]
        files = sorted(self.server.folder.iterdir())
        if path.startswith(f"/api/models/{NAME}/tree/"):
            listed = [
                {"type": "file", "path": file.name, "size": file.stat().st_size, "oid": f"{number:040x}"}
                for number, file in enumerate(files)
            ]
            self.answer(200, json.dumps(listed).encode())
        elif path.startswith(f"/api/models/{NAME}"):
            siblings = [{"rfilename": file.name} for file in files]
            self.answer(200, json.dumps({"id": NAME, "sha": COMMIT, "siblings": siblings}).encode())
        elif path.startswith(f"/{NAME}/resolve/") and (file := self.server.folder / Path(path).name).exists():
            self.answer(200, file.read_bytes(), {"ETag": f'"{files.index(file):040x}"', "X-Repo-Commit": COMMIT})
        else:
            code = "GatedRepo" if "gated" in path else "RepoNotFound"
            self.answer(403 if "gated" in path else 404, b"{}", {"X-Error-Code": code})

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    save_model(tmp_path / "served")
    (tmp_path / "served" / "tokenizer.json").write_text("{}")
    (tmp_path / "served" / "pytorch_model.bin").write_text("not wanted")
    with Hub(tmp_path / "served") as hub:
        threading.Thread(target=hub.serve_forever, daemon=True).start()
        yield hub
        hub.shutdown()


def test_model_is_fetched_once_and_only_what_is_needed(hub: Hub, tmp_path: Path) -> None:
    home, address = tmp_path / "home", f"http://127.0.0.1:{hub.server_port}"
    folder = Path(resolve(NAME, home, HF_ENDPOINT=address))
    assert folder == home / "hub" / "models--acme--tiny-llama" / "snapshots" / COMMIT
    taken = {file.name for file in folder.iterdir()}
    assert taken == {file.name for file in hub.folder.iterdir()} - {"pytorch_model.bin"}
    assert (folder / "model.safetensors").read_bytes() == (hub.folder / "model.safetensors").read_bytes()
    hub.asked.clear()
    assert resolve(NAME, home, HF_ENDPOINT=address) == str(folder)
    assert hub.asked == []
    # What is missing is fetched again.
    (folder / "tokenizer.json").unlink()
    assert resolve(NAME, home, HF_ENDPOINT=address) == str(folder)
    assert (folder / "tokenizer.json").exists()


@pytest.mark.parametrize(
    ("name", "words"),
    [("acme/none", "UnknownModel: The hub has no model acme/none"), ("acme/gated", "DownloadError: The hub shows")],
)
def test_model_the_hub_does_not_give_is_a_sentence(name: str, words: str, hub: Hub, tmp_path: Path) -> None:
    said = resolve(name, tmp_path / "home", HF_ENDPOINT=f"http://127.0.0.1:{hub.server_port}")
    assert said.startswith(words)
    assert said.endswith("set HF_TOKEN.")


def test_model_in_another_form_is_refused(hub: Hub, tmp_path: Path) -> None:
    (hub.folder / "model.safetensors").unlink()
    said = resolve(NAME, tmp_path / "home", HF_ENDPOINT=f"http://127.0.0.1:{hub.server_port}")
    assert said.startswith(f"UnknownModel: The hub's {NAME} has no model.safetensors; ")
