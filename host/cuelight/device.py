"""The device, as a program uses it: open, configure, submit, read results, close."""

from __future__ import annotations

import atexit
import contextlib
import functools
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from cuelight import regmap
from cuelight.arguments import check_lengths, check_mask, check_prompt, check_range, check_sampling
from cuelight.commands import Reject
from cuelight.errors import (
    CuelightError,
    DeviceBusy,
    DeviceClosed,
    DeviceLost,
    InvalidArgument,
    Timeout,
    TransportError,
    UnknownDevice,
    UnknownGroup,
    UnknownTier,
)
from cuelight.filters import NO_FILTERS, Filters, check_top_logprobs
from cuelight.journal import Journal
from cuelight.lanes.types import SlotRecord
from cuelight.link import Link, Settings
from cuelight.manual import ManualRequest
from cuelight.observe import SUFFIX
from cuelight.policy import Cost, Tier, complete_tiers
from cuelight.publish import Publisher
from cuelight.regmap import CONTROL, IDENTITY, LANE, LANE_STRIDE
from cuelight.request import DEFAULT_TIMEOUT_S, Request
from cuelight.room import Room
from cuelight.segment import Segment
from cuelight.snapshot import Failovers, RequestState, Snapshot
from cuelight.status import Status, read_status
from cuelight.trace import Event
from cuelight.transports.base import Transport
from cuelight.transports.identity import identify

__all__ = ["Device"]

_T = TypeVar("_T")

_FRUITLESS = 3
_RESET_S = 5.0
_EXIT_S = 1.0
_log = logging.getLogger(__name__)


class Device:
    """A scheduler and the requests on it. Safe from several threads; a context manager that closes itself.

    Manual mode needs no configuration and no lane::

        with Device.open("twin") as device:
            request = device.admit(stage=3)
            request.stage_done()
            request.run(stage=4)
            request.cancel()

    Automatic mode: `configure`, lanes at work on `device.segment` (see `cuelight.lanes.port`), then `submit`.

    A device that is lost is replaced by a fresh one where there is a way to open one: requests in automatic mode go on
    there from their latest token, on lanes that attach to its `segment`; those in manual mode are lost.

    Parameters
    ----------
    transport : Transport
        The way to the device; closed with it.
    reopen : callable, optional
        Opens the way to a fresh device that is set up alike.
    uri, title : str
        What `cuelight status` calls it and says it is used for.

    Attributes
    ----------
    url : str
        HTTP address at which this program serves, for those who look at the device; empty until set.

    Raises
    ------
    DeviceLost
        Nothing answers at the transport's other end.
    TransportError
        What answers is no device of this version.
    """

    def __init__(
        self,
        transport: Transport,
        reopen: Callable[[], Transport] | None = None,
        *,
        uri: str = "twin",
        title: str = "",
    ) -> None:
        self.url = ""
        self._uri = uri
        self._title = title
        self._opened_ns = time.monotonic_ns()
        self.capabilities = identify(transport)
        self._journal = Journal(
            self._admit_again, lambda: self._room.break_promise(), self._replace, self.capabilities.lanes
        )
        self._link = Link(transport, self._journal)
        self._settings: Settings | None = None
        self._tiers = complete_tiers((), self.capabilities)
        self._costs = [Cost()] * self.capabilities.lanes
        self._setting = threading.Lock()
        self._reopen = reopen
        self._replaced = threading.Condition()
        self._on_replaced: Callable[[], None] | None = None
        self._fruitless = 0
        self._delivered = 0
        self._dead = False
        self._lanes_lost = 0
        self._devices_lost = 0
        self._given_up: dict[int, CuelightError] = {}
        self._closing = threading.Lock()
        self._closed = False
        self._publisher = Publisher(Path(f"{transport.segment.path}{SUFFIX}"), self.snapshot)
        # A program that ends without closing must not pull the transport from under the results' thread.
        atexit.register(self.close, _EXIT_S)

    @classmethod
    def open(
        cls,
        uri: str = "twin",
        *,
        lanes: int = 2,
        slots: int = 1024,
        seats: int = 64,
        context: int = 2048,
        blocks: int = 32,
        vocabulary: int = 0,
        tiers: Sequence[Tier] = (),
        polling: bool = False,
        push: bool | None = None,
        title: str = "",
        progress: Callable[[str, float], object] | None = None,
    ) -> Self:
        """Open a device.

        Parameters
        ----------
        uri : str
            `twin`, the scheduler's RTL compiled to native code, built on first use; `pcie:0000:65:00.0`, a board;
            `pcie`, the only board of this machine.
        lanes, slots, seats : int
            Size of the twin; a board's are its own.
        context : int
            Positions a request may have, prompt and new tokens together.
        blocks : int
            KV blocks a request may have.
        vocabulary : int
            Tokens that a mask covers; 0: no request may have masks.
        tiers : sequence of Tier
            What each tier is granted, the highest first; see `set_tiers`.
        polling : bool
            Let the thread that serves lanes spin; for those that can't wake it, such as a GPU.
        push : bool, optional
            Whether a board may bring dispatches to its lanes by itself; if left out, where its driver allows it.
        title : str
            What it is used for, for `cuelight status`.
        progress : callable, optional
            Told what is being built, and which share of it is done.

        Raises
        ------
        UnknownDevice
            No transport has this URI, or there is no such board.
        BuildError
            The twin, or native code of the driver, could not be built.
        DeviceBusy
            Another program has the board.
        TransportError, DeviceLost
            The board can't be used as things are: see the message.
        InvalidArgument
            A size, or a tier, is out of range; or this device can't push.
        """
        reopen: Callable[[], Transport]
        if push and uri == "twin":
            raise InvalidArgument("The twin masters no bus; leave PUSH out, or open a board on PCI Express.")
        if uri == "twin":
            from cuelight.transports.twin import TwinTransport

            reopen = functools.partial(
                TwinTransport,
                lanes=lanes,
                slots=slots,
                seats=seats,
                context=context,
                blocks=blocks,
                vocabulary=vocabulary,
                polling=polling,
                progress=progress,
            )
        elif uri.partition(":")[0] == "pcie":
            from cuelight.transports.pcie import Board

            board = Board(uri, context=context, blocks=blocks, vocabulary=vocabulary, polling=polling, push=push)
            reopen = board.open
        else:
            raise UnknownDevice(f"There is no device {uri!r}; this version knows 'twin' and 'pcie:0000:65:00.0'.")
        transport = reopen()
        try:
            device = cls(transport, reopen, uri=uri, title=title)
        except BaseException:
            transport.close()
            raise
        try:
            device.set_tiers(tiers)
        except BaseException:
            device.close()
            raise
        return device

    @property
    def segment(self) -> Segment:
        """The memory that host and lanes share; a lane process opens `segment.path`. A fresh device has another one."""
        return self.transport.segment

    @property
    def transport(self) -> Transport:
        """The registers themselves."""
        return self._link.transport

    @property
    def requests(self) -> tuple[Request, ...]:
        """Automatic requests that live, those that wait to be admitted again included."""
        return tuple(dict.fromkeys((*self._link.results.live, *self._journal.waiting)))

    @property
    def context(self) -> int:
        """Positions a request may have, prompt and new tokens together."""
        return min(self.segment.shape.context, self.segment.shape.blocks * self.block_positions)

    @property
    def block_positions(self) -> int:
        """Positions of a KV block; prompts share whole ones."""
        return self._settings.block_positions if self._settings else 1

    def delivered(self, group: int) -> int:
        """Tokens that lane group `group` has delivered so far."""
        return self._journal.delivered[group]

    def configure(
        self,
        *,
        stages: int,
        kv_blocks: int,
        block_positions: int,
        seats: int | None = None,
        rows: int | None = None,
        depth: int = 2,
        tiers: Sequence[Tier] | None = None,
    ) -> None:
        """Set up automatic mode, alike for all lane groups; only while no request lives.

        Parameters
        ----------
        stages : int
            Stages of the model, 4 at least: prefill, kv-init, layer stages, output decode.
        kv_blocks : int
            KV blocks of each group.
        block_positions : int
            Positions of a block.
        seats : int, optional
            Seats of each group; the device's if left out.
        rows : int, optional
            Row budget of a pass, seats + 16 to 512; 256, or seats + 16 where that is more, if left out.
        depth : int
            Dispatches that a lane may have at once: 2, or 1 for a lane that reports seat by seat in STAGE_DONE.
        tiers : sequence of Tier, optional
            As for `set_tiers`; as they are if left out.

        Raises
        ------
        InvalidArgument
            A value is out of range.
        DeviceBusy
            Requests live.
        """
        seats = self.capabilities.seats if seats is None else seats
        rows = max(256, seats + 16) if rows is None else rows
        granted = None if tiers is None else complete_tiers(tiers, self.capabilities)
        for name, value, low, high in (
            ("stages", stages, 4, self.capabilities.stages),
            ("kv_blocks", kv_blocks, 0, 0xFFFF),
            ("block_positions", block_positions, 1, 1 << 20),
            ("seats", seats, 1, self.capabilities.seats),
            ("rows", rows, seats + 16, 512),
            ("depth", depth, 1, 2),
        ):
            check_range(name, value, low, high)
        if self._journal.waiting:
            raise DeviceBusy("Requests wait to be admitted again; wait for them before configuring the device.")
        self._link.configure(settings := Settings(stages, kv_blocks, block_positions, seats, rows, depth))
        self._settings = settings
        if granted is not None:
            self.set_tiers(granted)

    def set_tiers(self, tiers: Sequence[Tier]) -> None:
        """Set what each tier is granted in every lane group, at any time; `status` reads it back.

        Parameters
        ----------
        tiers : sequence of Tier
            The highest first; those left out are granted nothing.

        Raises
        ------
        InvalidArgument
            A value is out of range, or there are too many.
        """
        tiers = complete_tiers(tiers, self.capabilities)
        with self._setting:
            with self._replaced:
                self._tiers = tiers
            self._on_link(lambda link, _: link.set_tiers(tiers), DEFAULT_TIMEOUT_S)

    def set_cost(self, cost: Cost, group: int | None = None) -> None:
        """Set what a pass may cost, in one lane group or in all, at any time; `status` reads it back.

        Raises
        ------
        InvalidArgument, UnknownGroup
            A value is out of range, or there is no such group.
        """
        cost.check()
        if group is not None:
            self._check_group(group)
        with self._setting:
            with self._replaced:
                for each in range(self.capabilities.lanes) if group is None else (group,):
                    self._costs[each] = cost
            self._on_link(lambda link, _: link.set_costs(self._costs), DEFAULT_TIMEOUT_S)

    def admit(self, stage: int, timeout_s: float = DEFAULT_TIMEOUT_S) -> ManualRequest:
        """Admit a request in manual mode, RUNNING(`stage`).

        Parameters
        ----------
        stage : int
            Target stage.
        timeout_s : float
            Longest wait for a slot, in seconds.

        Raises
        ------
        DeviceFull
            No slot became free in time.
        CommandRefused
            There is no such stage.
        """
        return self._on_link(lambda link, left_s: link.admission.admit_manual(stage, left_s), timeout_s)

    def submit(
        self,
        prompt: Sequence[int],
        max_new_tokens: int,
        *,
        group: int = 0,
        tier: int = 0,
        temperature: float = 0.0,
        seed: int = 0,
        filters: Filters = NO_FILTERS,
        top_logprobs: int = 0,
        ignore_eos: bool = False,
        stepped: bool = False,
        mask: NDArray[np.uint32] | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> Request:
        """Admit a request in automatic mode.

        Parameters
        ----------
        prompt : sequence of int
            Token ids, one at least.
        max_new_tokens : int
            New tokens at most, one at least.
        group : int
            Lane group.
        tier : int
            Latency tier, 0 the highest.
        temperature : float
            0 is greedy.
        seed : int
            64 bits; with the position it keys the random numbers.
        filters : Filters
            What shapes the choice of tokens beyond temperature.
        top_logprobs : int
            Likeliest tokens to report with each token, 20 at most.
        ignore_eos : bool
            Go on after end of text.
        stepped : bool
            Park after each token until `Request.credit`.
        mask : array of uint32, optional
            Tokens that the first one is chosen among: token t is bit t mod 32 of word t / 32, up to the device's
            `vocabulary`. Implies `stepped`; each credit comes with the next mask.
        timeout_s : float
            Longest wait for a slot and KV blocks, in seconds; 0: don't wait.

        Returns
        -------
        Request
            Yields the tokens.

        Raises
        ------
        InvalidArgument, UnknownTier, UnknownGroup, PromptTooLong
            An argument can't be right.
        DeviceFull, NoKvCredit
            No slot, or too few KV blocks, became free in time, or a group can never have as many for its tier.
        LaneError
            The group's lane has died.
        CommandRefused
            The device refused it for another reason.
        """
        tokens = check_prompt(prompt)
        check_lengths(len(tokens), max_new_tokens, self.context)
        check_sampling(temperature, seed)
        filters.check()
        check_top_logprobs(top_logprobs)
        if mask is not None:
            mask = check_mask(mask, self.segment.shape.mask_words)
        if not 0 <= tier < self.capabilities.tiers:
            raise UnknownTier(f"Tier {tier} does not exist; choose 0 (highest) to {self.capabilities.tiers - 1}.")
        self._check_group(group)
        kv_blocks = -(-(len(tokens) + max_new_tokens) // self.block_positions)
        record = SlotRecord(
            request_id=0,
            prompt=tokens,
            limit=max_new_tokens,
            block_table=np.empty(0, np.int32),
            temperature=temperature,
            seed=seed,
            ignore_eos=ignore_eos,
            masked=mask is not None,
            filters=filters,
            top_logprobs=top_logprobs,
        )
        request = Request(group, tier, record, kv_blocks, self._cancel, self._tell, stepped=stepped, mask=mask)
        self._on_link(lambda link, left_s: link.admission.admit(request, left_s), timeout_s)
        return request

    def submit_samples(
        self,
        prompt: Sequence[int],
        max_new_tokens: int,
        n: int,
        *,
        group: int = 0,
        tier: int = 0,
        temperature: float = 1.0,
        seed: int = 0,
        filters: Filters = NO_FILTERS,
        top_logprobs: int = 0,
        ignore_eos: bool = False,
        stepped: bool = False,
        mask: NDArray[np.uint32] | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> tuple[Request, ...]:
        """Admit `n` requests that differ in their seeds: `seed`, `seed` + 1, …, modulo 2**64.

        The prompt is prefilled once: where it fills a KV block, the others follow at the first one's first token, as
        prefix hits. If that does not come in time they follow all the same, and prefill for themselves.

        Parameters and errors are those of `submit`; `timeout_s` is for all of them, and if one is refused, those
        before it are cancelled.

        Returns
        -------
        tuple of Request
            In the order of their seeds.
        """
        if n < 1:
            raise InvalidArgument(f"n must be at least 1, not {n}.")
        deadline = time.monotonic() + timeout_s
        requests: list[Request] = []
        try:
            for index in range(n):
                requests.append(
                    self.submit(
                        prompt,
                        max_new_tokens,
                        group=group,
                        tier=tier,
                        temperature=temperature,
                        seed=(seed + index) % (1 << 64) if index else seed,
                        filters=filters,
                        top_logprobs=top_logprobs,
                        ignore_eos=ignore_eos,
                        stepped=stepped,
                        mask=mask,
                        timeout_s=max(0.0, deadline - time.monotonic()),
                    )
                )
                if not index and n > 1 and requests[0].prompt_tokens > self.block_positions:
                    with contextlib.suppress(Timeout):
                        next(requests[0].tokens(max(0.0, deadline - time.monotonic())), None)
        except BaseException:
            for request in requests:
                with contextlib.suppress(CuelightError):
                    request.cancel()
            raise
        return tuple(requests)

    def restart_group(self, group: int) -> None:
        """Take the requests of a lane group back, because its lane has died and another one takes its place.

        They are admitted again at once, with the tokens they have, and wait for the new lane. Nothing that the lane
        had in its KV cache is used again. The lane must be dead: one that goes on would write into blocks of others.

        Raises
        ------
        DeviceLost
            The device is gone; it will be replaced as a whole.
        TransportError
            The device does not come to an end with the reset.
        """
        self._check_group(group)
        link = self._link
        deadline = time.monotonic() + _RESET_S
        with link.commands.lock:
            self._lanes_lost += 1
            suspects = [request for request in link.results.live if request.group == group and not request.progressed]
            for request in suspects:
                request.note_company(len(suspects) > 1)
            link.room.forget(group)
            link.transport.write32(CONTROL + regmap.Control.GROUP_RESET, group)
            status = LANE + LANE_STRIDE * group + regmap.Lane.LANE_STATUS
            while regmap.LaneLaneStatus.unpack(link.transport.read32(status)).resetting:
                if time.monotonic() > deadline:
                    raise TransportError(f"The device goes on resetting lane group {group}; open it again.")
            link.results.sweep(group)

    def reset_group(self, group: int, error: CuelightError) -> None:
        """Give a lane group up, because its lane has died: its requests, and later ones, fail with `error`.

        The device drops the group's dispatch and retires its requests; other groups are not disturbed.
        """
        self._check_group(group)
        link = self._link
        self._given_up[group] = error
        link.room.close_group(group, error)
        with link.commands.lock:
            for request in self.requests:
                if request.group == group:
                    request.blame(error)
            link.transport.write32(CONTROL + regmap.Control.GROUP_RESET, group)
            link.results.sweep(group)
        for request in self._journal.waiting:
            self._journal.release(request)

    def on_replaced(self, call: Callable[[], None]) -> None:
        """Have `call` called, by another thread, whenever the device was replaced by a fresh one."""
        self._on_replaced = call

    def wait_replaced(self, segment_path: Path, timeout_s: float = DEFAULT_TIMEOUT_S) -> bool:
        """Wait until the device whose segment is at `segment_path` has been replaced; False if it is not, or can't be.

        Parameters
        ----------
        segment_path : Path
            Path of a device's segment.
        timeout_s : float
            Longest wait, in seconds.
        """
        link = self._link
        return link.transport.segment.path != segment_path or self._wait_replaced(link, timeout_s)

    def status(self) -> Status:
        """Read the whole device."""
        return read_status(self.transport)

    @property
    def failovers(self) -> Failovers:
        """What was lost since it was opened."""
        return Failovers(self._lanes_lost, self._devices_lost, self._journal.replayed, self._journal.given_up)

    def snapshot(self) -> Snapshot:
        """Read the whole device, and what the driver knows of its lanes and requests."""
        now_ns = time.monotonic_ns()
        return Snapshot(
            device=self._uri,
            title=self._title,
            program=_program(),
            pid=os.getpid(),
            url=self.url,
            uptime_s=(now_ns - self._opened_ns) / 1e9,
            status=self.status(),
            lane_pids=tuple(self.segment.lane_pid(lane) for lane in range(self.capabilities.lanes)),
            waiting=tuple(self._room.waiting(tier) for tier in range(self.capabilities.tiers)),
            tokens=tuple(self._journal.tier_tokens[tier] for tier in range(self.capabilities.tiers)),
            requests=tuple(
                RequestState(
                    id=request.id,
                    tier=request.tier,
                    group=request.group,
                    prompt_tokens=request.prompt_tokens,
                    new_tokens=len(request.received),
                    max_new_tokens=request.max_new_tokens,
                    parked=request.parked,
                    age_s=(now_ns - request.submitted_ns) / 1e9,
                )
                for request in sorted(self.requests, key=lambda request: request.submitted_ns)
            ),
            failovers=self.failovers,
        )

    def trace(self) -> list[Event]:
        """Take the events traced since the last call, oldest first."""
        transport = self.transport
        now_ns = transport.read64(IDENTITY + regmap.Identity.TIME_NS)
        return [Event.decode(*fields, now_ns=now_ns) for fields in transport.drain_trace()]

    def rejects(self) -> tuple[Reject, ...]:
        """The latest refused commands that were written to registers without this driver's API."""
        commands = self._link.commands
        commands.collect_rejects()
        return tuple(commands.unclaimed)

    def stop(self, timeout_s: float = _RESET_S) -> None:
        """Refuse new requests and end those that live, by cancel, or by resetting groups whose lane does not answer.

        Parameters
        ----------
        timeout_s : float
            How long lanes may take to reach their loop points, in seconds.
        """
        closed = DeviceClosed("The device was closed while the request lived; open it again and submit it again.")
        self._journal.close(closed)
        with self._replaced:
            self._dead = True
            self._replaced.notify_all()
            link = self._link
        link.room.close(closed)
        with contextlib.suppress(CuelightError):
            with link.commands.lock:
                live = link.results.live
                for request in live:
                    request.blame(closed)
            for request in live:
                link.commands.cancel(request.id)
            if not link.results.wait_empty(timeout_s):
                for group in {request.group for request in link.results.live}:
                    link.transport.write32(CONTROL + regmap.Control.GROUP_RESET, group)
                link.results.wait_empty(_RESET_S)
        link.results.fail(closed)

    def close(self, timeout_s: float = _RESET_S) -> None:
        """`stop`, then give the device back; a second call does nothing.

        Parameters
        ----------
        timeout_s : float
            How long lanes may take to reach their loop points, in seconds.
        """
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._publisher.close()
            try:
                self.stop(timeout_s)
            finally:
                self._journal.join(_RESET_S)
                self._link.results.stop()
                self._link.transport.close()
                atexit.unregister(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _room(self) -> Room:
        return self._link.room

    def _on_link(self, call: Callable[[Link, float], _T], timeout_s: float) -> _T:
        """Call with the device there is, and again with the one that replaces it if it is lost meanwhile."""
        deadline = time.monotonic() + timeout_s
        while True:
            link = self._link
            try:
                return call(link, max(0.0, deadline - time.monotonic()))
            except DeviceLost:
                with contextlib.suppress(DeviceClosed):
                    # Who replaces it may not know yet.
                    link.transport.segment.ring_host()
                if not self._wait_replaced(link, deadline - time.monotonic()):
                    raise

    def _wait_replaced(self, link: Link, timeout_s: float) -> bool:
        with self._replaced:
            self._replaced.wait_for(lambda: self._dead or self._link is not link, max(0.0, timeout_s))
            return self._link is not link

    def _admit_again(self, request: Request) -> None:
        if request.cancelled:
            request.retire(cancelled=True)
            return
        link = self._link
        try:
            link.admission.admit(request, DEFAULT_TIMEOUT_S, again=True)
        except DeviceLost:
            with contextlib.suppress(DeviceClosed):
                link.transport.segment.ring_host()
            raise
        self._tell(request)
        if request.cancelled:
            self._cancel(request)

    def _replace(self, transport: Transport, error: CuelightError) -> None:
        old = self._link
        if old.transport is not transport:
            return
        delivered = sum(self._journal.delivered)
        self._fruitless = 0 if delivered != self._delivered else self._fruitless + 1
        self._delivered = delivered
        try:
            if self._reopen is None or self._fruitless > _FRUITLESS:
                raise error.with_traceback(None)
            fresh = self._open_fresh(self._reopen, old.transport.segment)
        except BaseException:
            with self._replaced:
                self._dead = True
                self._replaced.notify_all()
            raise
        with self._replaced:
            if closing := self._dead:
                old = fresh
            else:
                # With the lock held: nobody sets them between this and the change. Whoever admits to it notices if
                # it is gone already.
                with contextlib.suppress(CuelightError):
                    fresh.set_tiers(self._tiers)
                    fresh.set_costs(self._costs)
                self._link = fresh
                self._devices_lost += 1
                _log.warning("The device was lost (%s); another one has taken its place.", error)
            self._replaced.notify_all()
        old.results.stop()
        # This asks its lanes to end, too.
        old.transport.close()
        if self._on_replaced and not closing:
            self._on_replaced()

    def _open_fresh(self, reopen: Callable[[], Transport], seen: Segment) -> Link:
        transport = reopen()
        try:
            link = Link(transport, self._journal)
            try:
                link.pass_over_sequences(seen)
                if self._settings:
                    link.configure(self._settings)
                for group, error in self._given_up.items():
                    link.room.close_group(group, error)
            except BaseException:
                link.results.stop()
                raise
        except BaseException:
            transport.close()
            raise
        return link

    def _cancel(self, request: Request) -> bool:
        link = self._link
        with contextlib.suppress(DeviceLost), link.commands.lock:
            # Ids of another device mean other requests here.
            if link.results.holds(request):
                return link.commands.cancel(request.id)
        return self._journal.withdraw(request)

    def _tell(self, request: Request) -> None:
        link = self._link
        # One that is lost meanwhile hears it when it is admitted again.
        with contextlib.suppress(DeviceLost):
            link.results.tell(request)
        self._journal.release(request)

    def _check_group(self, group: int) -> None:
        if not 0 <= group < self.capabilities.lanes:
            raise UnknownGroup(f"Lane group {group} does not exist; choose 0 to {self.capabilities.lanes - 1}.")


def _program() -> str:
    path = Path(sys.argv[0] if sys.argv else "")
    # As `python -m` names it.
    return path.parent.name if path.name == "__main__.py" else path.name
