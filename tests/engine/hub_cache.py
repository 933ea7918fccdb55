"""A hub's cache as huggingface_hub lays it out, a hub on this machine, and questions asked of them in a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAME = "acme/tiny-llama"


def cache_files(home: Path, folder: Path, name: str = NAME) -> Path:
    """Move a folder's files into a hub cache: blobs, a snapshot of links to them, and a ref; returns the snapshot."""
    repository = home / "hub" / f"models--{name.replace('/', '--')}"
    snapshot = repository / "snapshots" / COMMIT
    for made in (repository / "blobs", repository / "refs", snapshot):
        made.mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    for number, file in enumerate(sorted(file for file in folder.rglob("*") if file.is_file())):
        link = snapshot / file.relative_to(folder)
        link.parent.mkdir(exist_ok=True)
        blob = repository / "blobs" / f"{number:040x}"
        file.rename(blob)
        link.symlink_to(os.path.relpath(blob, link.parent))
    return snapshot


def run(home: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own: huggingface_hub reads the environment when it is imported."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    own = {"HF_HOME": str(home), "HF_ENDPOINT": "http://127.0.0.1:9", "XDG_CACHE_HOME": str(home / "cache")}
    return subprocess.run(
        [sys.executable, *command], env=clean | own | environment, capture_output=True, text=True, timeout=120
    )


def resolve(name: str, home: Path, **environment: str) -> str:
    """What `resolve` says of a name, or raises."""
    program = (
        "import sys\n"
        "from cuelight.engine.weights import resolve\n"
        "from cuelight.errors import CuelightError\n"
        "try:\n"
        "    print(resolve(sys.argv[1]))\n"
        "except CuelightError as error:\n"
        "    print(type(error).__name__, error, sep=': ')\n"
    )
    done = run(home, "-c", program, name, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.rstrip("\n")


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


@contextmanager
def serving(folder: Path) -> Iterator[Hub]:
    """A hub that holds a folder's files under `NAME`."""
    with Hub(folder) as hub:
        threading.Thread(target=hub.serve_forever, daemon=True).start()
        yield hub
        hub.shutdown()
