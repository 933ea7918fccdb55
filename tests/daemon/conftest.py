"""A daemon that really runs, on a small random model."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from cuelight import LLM
from cuelight.daemon.core import DeviceCore
from cuelight.daemon.serve import Daemon, listen
from cuelight.daemon.service import Service
from cuelight.daemon.settings import Settings, SettingsError
from cuelight.engine.convert import convert

from ..engine.tiny import write_gguf

WAIT_S = 30.0
TEMPLATE = (
    "{% if tools %}<|im_start|>tools:{% for tool in tools %}{{ tool.function | tojson }}{% endfor %}"
    "<tool_call>name,arguments</tool_call><|im_end|>{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message.role }}:{{ message.content }}"
    "{% for call in message.tool_calls or [] %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}"
    "<|im_end|>{% endfor %}"
)
LETTERS = [chr(0x21 + index) for index in range(94)]
SPECIAL, TAGS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], ["<tool_call>", "</tool_call>"]
TOKENS = [*SPECIAL, *LETTERS, "ab", "Ġ", "Ċ", "Ã", "©", *TAGS]
"""Special ones, ASCII, a space, an end of line, both bytes of é, and tags that are tokens but no special ones."""


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of a small random model that knows chats."""
    folder = tmp_path_factory.mktemp("model") / "tiny"
    folder.mkdir()
    kinds = [3] * 3 + [1] * (len(TOKENS) - 5) + [4] * 2
    fields: dict[str, Any] = {"tokenizer.ggml.tokens": TOKENS, "tokenizer.ggml.token_type": kinds}
    write_gguf(folder / "tiny.gguf", **fields | {"llama.context_length": 1024})
    convert(folder / "tiny.gguf", folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


@pytest.fixture(scope="session")
def llm(model: Path) -> Iterator[LLM]:
    with LLM.open(model, kv_positions=4096, layers_per_stage=1, threads=1, seats=8) as llm:
        yield llm


class Running:
    """A daemon in a thread of this process."""

    def __init__(self, llm: LLM, **settings: object) -> None:
        self.said = {"server": {"port": 0, "drain_s": 5.0}, **settings}
        self.core = DeviceCore(llm, "tiny", self._load)
        self.daemon = Daemon(self.core, listen(self.core.settings.server))
        self.url = self.daemon.url
        self._thread = threading.Thread(target=self.daemon.run)
        self._thread.start()

    @property
    def service(self) -> Service:
        """Of the front end in this process."""
        assert self.daemon.service
        return self.daemon.service

    def _load(self) -> Settings:
        try:
            return Settings.model_validate(self.said)
        except ValueError as error:
            raise SettingsError(str(error)) from error

    def change(self, **settings: object) -> None:
        """Change settings and have them read again."""
        self.said |= settings
        self.daemon.reload(WAIT_S)

    def client(self, key: str = "none") -> openai.OpenAI:
        """A client of it."""
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, timeout=WAIT_S)

    def stop(self) -> None:
        """End it."""
        self.daemon.stop()
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()


@pytest.fixture(scope="module")
def running(llm: LLM) -> Iterator[Running]:
    running = Running(llm)
    yield running
    running.stop()


@pytest.fixture
def client(running: Running) -> Iterator[openai.OpenAI]:
    with running.client() as client:
        yield client
