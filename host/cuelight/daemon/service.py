"""The service: a model, who may ask it what, and the questions that are under way."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cuelight.daemon.access import Access
from cuelight.daemon.admission import Admission
from cuelight.daemon.failures import Stopping
from cuelight.daemon.generation import Generation
from cuelight.daemon.mailbox import Mailbox
from cuelight.daemon.order import Order
from cuelight.daemon.settings import Settings
from cuelight.llm import LLM

__all__ = ["Service"]

_LONG = 4096
_ENCODERS = 2


class Service:
    """What routes ask; all of it is for the event loop that `open` was called on.

    Parameters
    ----------
    llm : LLM
        The model at work; not closed here.
    model : str
        What clients call it.
    settings : Settings
        What to do.
    path : Path, optional
        Where they came from, for `reload`.
    """

    def __init__(self, llm: LLM, model: str, settings: Settings, path: Path | None = None) -> None:
        self.llm = llm
        self.model = model
        self.models = frozenset((model, llm.directory.name))
        self.settings = settings
        self.access = Access(settings)
        self.stopping = False
        self._path = path
        self._encoders = ThreadPoolExecutor(_ENCODERS, "cuelight-encode")

    async def open(self) -> None:
        """Begin to take questions."""
        groups = self.llm.device.status().groups[: len(self.llm.lanes)]
        self.mailbox = Mailbox(asyncio.get_running_loop())
        self.admission = Admission(self.settings.tiers, sum(group.seats for group in groups), self.mailbox)

    async def close(self) -> None:
        """Take no more; what is under way ends with the model."""
        self.stopping = True
        await self.admission.close()
        self._encoders.shutdown(wait=False, cancel_futures=True)

    async def encode(self, prompt: str | Sequence[Mapping[str, str]]) -> list[int]:
        """Token ids of a prompt or of messages, errors as in `LLM.encode`; long ones do not keep others waiting."""
        parts = (prompt,) if isinstance(prompt, str) else [message["content"] for message in prompt]
        if sum(map(len, parts)) < _LONG:
            return self.llm.encode(prompt)
        return await asyncio.get_running_loop().run_in_executor(self._encoders, self.llm.encode, prompt)

    def generation(self, order: Order) -> Generation:
        """Make a generation of an order.

        Raises
        ------
        Stopping
            The daemon is ending.
        """
        if self.stopping:
            raise Stopping("The daemon is ending; ask again soon, or another one.")
        return Generation(order, self.llm, self.settings.tiers[order.tier].level, self.admission)
