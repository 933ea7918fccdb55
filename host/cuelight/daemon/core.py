"""The core in the process that has the device: who goes onto it next, whether it is well, what settings say."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, ProcessCollector

from cuelight.daemon.admission import Admission
from cuelight.daemon.grants import grant
from cuelight.daemon.logs import set_level
from cuelight.daemon.mailbox import Mailbox
from cuelight.daemon.metrics import render
from cuelight.daemon.order import Order
from cuelight.daemon.scheduler_metrics import SchedulerCollector
from cuelight.daemon.seam import Facts, Health
from cuelight.daemon.settings import Settings
from cuelight.daemon.watchdog import Watchdog
from cuelight.daemon.work import DeviceWork
from cuelight.errors import CuelightError, UnknownTier
from cuelight.llm import LLM

__all__ = ["DeviceCore"]

_log = logging.getLogger(__name__)


class DeviceCore:
    """A `Core`; all of it is for the event loop that `begin` was called on.

    Parameters
    ----------
    llm : LLM
        The model at work; not closed here.
    model : str
        What clients call it.
    load : callable
        Reads the settings, now and at each `reload`.

    Attributes
    ----------
    facts : Facts
        What does not change.
    settings : Settings
        The latest.
    settings_changed : callable
        Told the settings whenever they were read again.
    registry : CollectorRegistry
        Of `page`; front ends add what they count.
    admission : Admission
        Who goes onto the device next.
    watchdog : Watchdog
        Whether all is well.
    """

    admission: Admission
    watchdog: Watchdog

    def __init__(self, llm: LLM, model: str, load: Callable[[], Settings]) -> None:
        self.llm = llm
        self.settings = load()
        self.settings_changed: Callable[[Settings], None] = lambda settings: None
        rtl_hash = llm.device.status().rtl_hash
        self.facts = Facts(model, str(llm.directory), int(time.time()), llm.device.context, rtl_hash)
        self.registry = CollectorRegistry()
        self.registry.register(
            SchedulerCollector(
                lambda: self.watchdog.snapshot,
                lambda: self.watchdog.health.ok,
                lambda: {tier: self.admission.waiting(tier) for tier in self.settings.tiers},
                lambda: {tier: self.admission.under_way(tier) for tier in self.settings.tiers},
                lambda: {name: tier.level for name, tier in self.settings.tiers.items()},
                model,
            )
        )
        ProcessCollector(registry=self.registry)
        self._load = load
        self._reloading = asyncio.Lock()

    async def begin(self) -> None:
        """Begin to take orders."""
        self._loop = asyncio.get_running_loop()
        self.llm.device.set_tiers(grant(self.llm.device, self.settings.tiers))
        groups = self.llm.device.status().groups[: len(self.llm.lanes)]
        self.watchdog = Watchdog(self.llm.device, lambda: self.llm.lanes)
        self.admission = Admission(self.settings.tiers, sum(group.seats for group in groups), Mailbox(self._loop))

    async def close(self) -> None:
        """Take nothing more; what is under way must have been cancelled."""
        await self.admission.close()
        await self._loop.run_in_executor(None, self.watchdog.close)

    async def reload(self) -> None:
        """Read the settings again; if they can't be used, all stays as it was. What needs a restart is told."""
        async with self._reloading:
            try:
                settings = await self._loop.run_in_executor(None, self._load)
                await self._loop.run_in_executor(
                    None, lambda: self.llm.device.set_tiers(grant(self.llm.device, settings.tiers))
                )
            except CuelightError as error:
                _log.error("Settings stay as they are: %s", error)
                return
            if settings.server != self.settings.server:
                _log.warning("Changes of [server] take effect at the next start.")
            self.settings = settings
            self.admission.set_tiers(settings.tiers)
            set_level(settings.log.level)
            self.settings_changed(settings)
            _log.info("Settings were read again.")

    def ask(self, order: Order, hear: Callable[[], None]) -> DeviceWork:
        """Begin with an order; see `Core.ask`.

        Raises
        ------
        UnknownTier
            Its tier is gone.
        Busy, Late
            There is no room, or not in time.
        """
        if (tier := self.settings.tiers.get(order.tier)) is None:
            raise UnknownTier(f"There is no tier {order.tier!r} any more; use {' or '.join(self.settings.tiers)}.")
        return DeviceWork(order, self.llm, tier.level, self.admission, hear)

    async def health(self) -> Health:
        """How the service is now."""
        return self.watchdog.health

    async def page(self, accept: str) -> tuple[bytes, str]:
        """All metrics in the format that an Accept header asks for, and its content type."""
        return await self._loop.run_in_executor(None, render, self.registry, accept)
