"""The device, as a program uses it: open, configure, submit, read results, close."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from cuelight import regmap
from cuelight.admission import Admission
from cuelight.arguments import check_lengths, check_prompt, check_sampling
from cuelight.commands import Commands, Reject
from cuelight.errors import (
    CuelightError,
    DeviceBusy,
    DeviceClosed,
    DeviceLost,
    InvalidArgument,
    NoKvCredit,
    Timeout,
    TransportError,
    UnknownDevice,
    UnknownGroup,
    UnknownTier,
)
from cuelight.lanes.types import SlotRecord
from cuelight.manual import ManualRequest
from cuelight.observe import SUFFIX
from cuelight.publish import Publisher
from cuelight.regmap import CONTROL, GROUP, GROUP_STRIDE, IDENTITY
from cuelight.request import DEFAULT_TIMEOUT_S, Request
from cuelight.results import Results
from cuelight.room import Room
from cuelight.segment import Segment
from cuelight.snapshot import RequestState, Snapshot
from cuelight.status import Status, read_status
from cuelight.trace import Event
from cuelight.transports.base import Transport

__all__ = ["Device"]

_MAJOR = 1
_RESET_S = 5.0
_EXIT_S = 1.0


class Device:
    """A scheduler and the requests on it. Safe from several threads; a context manager that closes itself.

    Manual mode needs no configuration and no lane::

        with Device.open("twin") as device:
            request = device.admit(stage=3)
            request.stage_done()
            request.run(stage=4)
            request.cancel()

    Automatic mode: `configure`, lanes at work on `device.segment` (see `cuelight.lanes.port`), then `submit`.

    Parameters
    ----------
    transport : Transport
        The way to the device; closed with it.
    uri, title : str
        What `cuelight status` calls it and says it is used for.

    Raises
    ------
    DeviceLost
        Nothing answers at the transport's other end.
    TransportError
        What answers is no device of this version.
    """

    def __init__(self, transport: Transport, *, uri: str = "twin", title: str = "") -> None:
        self._transport = transport
        self._uri = uri
        self._title = title
        self._opened_ns = time.monotonic_ns()
        self.capabilities = self._identify()
        self._room = Room(self.capabilities.slots, self.capabilities.lanes)
        self._commands = Commands(transport)
        self._results = Results(transport, self._commands, self._room)
        self._admission = Admission(transport.segment, self._commands, self._results, self._room)
        self._block_positions = 1
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
        polling: bool = False,
        title: str = "",
        progress: Callable[[str, float], object] | None = None,
    ) -> Self:
        """Open a device.

        Parameters
        ----------
        uri : str
            `twin`, the scheduler's RTL compiled to native code; built on first use.
        lanes, slots, seats : int
            Size of the twin.
        context : int
            Positions a request may have, prompt and new tokens together.
        blocks : int
            KV blocks a request may have.
        polling : bool
            Let the twin's thread spin; for lanes that can't wake it, such as a GPU.
        title : str
            What it is used for, for `cuelight status`.
        progress : callable, optional
            Told what is being built, and which share of it is done.

        Raises
        ------
        UnknownDevice
            No transport has this URI.
        BuildError
            The twin could not be built.
        """
        if uri != "twin":
            raise UnknownDevice(f"There is no device {uri!r}; this version knows only 'twin'.")
        from cuelight.transports.twin import TwinTransport

        transport = TwinTransport(
            lanes=lanes, slots=slots, seats=seats, context=context, blocks=blocks, polling=polling, progress=progress
        )
        try:
            return cls(transport, uri=uri, title=title)
        except BaseException:
            transport.close()
            raise

    @property
    def segment(self) -> Segment:
        """The memory that host and lanes share; a lane process opens `segment.path`."""
        return self._transport.segment

    @property
    def transport(self) -> Transport:
        """The registers themselves."""
        return self._transport

    @property
    def requests(self) -> tuple[Request, ...]:
        """Automatic requests that live."""
        return self._results.live

    @property
    def context(self) -> int:
        """Positions a request may have, prompt and new tokens together."""
        return min(self.segment.shape.context, self.segment.shape.blocks * self._block_positions)

    def configure(
        self,
        *,
        stages: int,
        kv_blocks: int,
        block_positions: int,
        seats: int | None = None,
        rows: int | None = None,
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

        Raises
        ------
        InvalidArgument
            A value is out of range.
        DeviceBusy
            Requests live.
        """
        seats = self.capabilities.seats if seats is None else seats
        rows = max(256, seats + 16) if rows is None else rows
        for name, value, low, high in (
            ("stages", stages, 4, self.capabilities.stages),
            ("kv_blocks", kv_blocks, 0, 0xFFFF),
            ("block_positions", block_positions, 1, 1 << 20),
            ("seats", seats, 1, self.capabilities.seats),
            ("rows", rows, seats + 16, 512),
        ):
            if not low <= value <= high:
                raise InvalidArgument(f"{name} must be {low} to {high}, not {value}.")
        groups = range(self.capabilities.lanes)
        with self._commands.lock:
            self._room.check_open()
            for group in groups:
                self._room.resize(group, 0)
            self._set(CONTROL + regmap.Control.STAGE_COUNT, stages)
            for group in groups:
                base = GROUP + GROUP_STRIDE * group
                # Rows may never be fewer than seats + 16, not even between the two writes.
                shrinks = seats <= self._transport.read32(base + regmap.Group.SEATS)
                settings = [(regmap.Group.SEATS, seats), (regmap.Group.ROWS, rows)]
                for register, value in settings if shrinks else reversed(settings):
                    self._set(base + register, value)
                self._set(base + regmap.Group.KV_BLOCKS, kv_blocks)
            self._block_positions = block_positions
            for group in groups:
                self._room.resize(group, kv_blocks, block_positions)

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
        return self._admission.admit_manual(stage, timeout_s)

    def submit(
        self,
        prompt: Sequence[int],
        max_new_tokens: int,
        *,
        group: int = 0,
        tier: int = 0,
        temperature: float = 0.0,
        seed: int = 0,
        ignore_eos: bool = False,
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
        ignore_eos : bool
            Go on after end of text.
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
            No slot, or too few KV blocks, became free in time, or a group never has as many.
        LaneError
            The group's lane has died.
        CommandRefused
            The device refused it for another reason.
        """
        tokens = check_prompt(prompt)
        check_lengths(len(tokens), max_new_tokens, self.context)
        check_sampling(temperature, seed)
        if not 0 <= tier < self.capabilities.tiers:
            raise UnknownTier(f"Tier {tier} does not exist; choose 0 (highest) to {self.capabilities.tiers - 1}.")
        self._check_group(group)
        kv_blocks = -(-(len(tokens) + max_new_tokens) // self._block_positions)
        if kv_blocks > (most := self._room.blocks(group)):
            raise NoKvCredit(
                f"The request needs {kv_blocks} KV blocks and lane group {group} has {most} in all; "
                "configure more, or ask for fewer new tokens."
            )
        record = SlotRecord(
            request_id=0,
            prompt=tokens,
            limit=max_new_tokens,
            block_table=np.empty(0, np.int32),
            temperature=temperature,
            seed=seed,
            ignore_eos=ignore_eos,
        )
        request = Request(group, tier, record, kv_blocks, self._cancel)
        self._admission.admit(request, timeout_s)
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
        ignore_eos: bool = False,
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
                        ignore_eos=ignore_eos,
                        timeout_s=max(0.0, deadline - time.monotonic()),
                    )
                )
                if not index and n > 1 and requests[0].prompt_tokens > self._block_positions:
                    with contextlib.suppress(Timeout):
                        next(requests[0].tokens(max(0.0, deadline - time.monotonic())), None)
        except BaseException:
            for request in requests:
                with contextlib.suppress(CuelightError):
                    request.cancel()
            raise
        return tuple(requests)

    def reset_group(self, group: int, error: CuelightError) -> None:
        """Give a lane group up, because its lane has died: its requests, and later ones, fail with `error`.

        The device drops the group's dispatch and retires its requests; other groups are not disturbed.
        """
        self._check_group(group)
        self._room.close_group(group, error)
        with self._commands.lock:
            for request in self._results.live:
                if request.group == group:
                    request.blame(error)
            self._transport.write32(CONTROL + regmap.Control.GROUP_RESET, group)

    def status(self) -> Status:
        """Read the whole device."""
        return read_status(self._transport)

    def snapshot(self) -> Snapshot:
        """Read the whole device, and what the driver knows of its lanes and requests."""
        now_ns = time.monotonic_ns()
        return Snapshot(
            device=self._uri,
            title=self._title,
            program=_program(),
            pid=os.getpid(),
            uptime_s=(now_ns - self._opened_ns) / 1e9,
            status=self.status(),
            lane_pids=tuple(self.segment.lane_pid(lane) for lane in range(self.capabilities.lanes)),
            waiting=tuple(self._room.waiting(tier) for tier in range(self.capabilities.tiers)),
            requests=tuple(
                RequestState(
                    id=request.id,
                    tier=request.tier,
                    group=request.group,
                    prompt_tokens=request.prompt_tokens,
                    new_tokens=len(request.received),
                    max_new_tokens=request.max_new_tokens,
                    age_s=(now_ns - request.submitted_ns) / 1e9,
                )
                for request in sorted(self.requests, key=lambda request: request.submitted_ns)
            ),
        )

    def trace(self) -> list[Event]:
        """Take the events traced since the last call, oldest first."""
        now_ns = self._transport.read64(IDENTITY + regmap.Identity.TIME_NS)
        return [Event.decode(*fields, now_ns=now_ns) for fields in self._transport.drain_trace()]

    def rejects(self) -> tuple[Reject, ...]:
        """The latest refused commands that were written to registers without this driver's API."""
        self._commands.collect_rejects()
        return tuple(self._commands.unclaimed)

    def stop(self, timeout_s: float = _RESET_S) -> None:
        """Refuse new requests and end those that live, by cancel, or by resetting groups whose lane does not answer.

        Parameters
        ----------
        timeout_s : float
            How long lanes may take to reach their loop points, in seconds.
        """
        closed = DeviceClosed("The device was closed while the request lived; open it again and submit it again.")
        self._room.close(closed)
        with contextlib.suppress(CuelightError):
            with self._commands.lock:
                live = self._results.live
                for request in live:
                    request.blame(closed)
            for request in live:
                self._commands.cancel(request.id)
            if not self._results.wait_empty(timeout_s):
                for group in {request.group for request in self._results.live}:
                    self._transport.write32(CONTROL + regmap.Control.GROUP_RESET, group)
                self._results.wait_empty(_RESET_S)
        self._results.fail(closed)

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
                self._results.stop()
                self._transport.close()
                atexit.unregister(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _identify(self) -> regmap.IdentityCapabilities:
        magic = self._transport.read32(IDENTITY + regmap.Identity.MAGIC)
        if magic == 0xFFFF_FFFF:
            raise DeviceLost("The device reads all ones; check that it is powered and programmed, then open it again.")
        if magic != regmap.Identity.MAGIC_RESET:
            raise TransportError(f"What answers has the magic {magic:#010x}, so it is no Cuelight; check the URI.")
        version = regmap.IdentityVersion.unpack(self._transport.read32(IDENTITY + regmap.Identity.VERSION))
        if version.major != _MAJOR:
            raise TransportError(
                f"The device speaks version {version.major} and this driver {_MAJOR}; bring both to one version."
            )
        return regmap.IdentityCapabilities.unpack(self._transport.read64(IDENTITY + regmap.Identity.CAPABILITIES))

    def _cancel(self, request: Request) -> bool:
        return self._commands.cancel(request.id)

    def _check_group(self, group: int) -> None:
        if not 0 <= group < self.capabilities.lanes:
            raise UnknownGroup(f"Lane group {group} does not exist; choose 0 to {self.capabilities.lanes - 1}.")

    def _set(self, offset: int, value: int) -> None:
        self._transport.write32(offset, value)
        if self._transport.read32(offset) != value:
            raise DeviceBusy(
                f"The device refused to set register {offset:#06x} to {value}; configure it while no request lives."
            )


def _program() -> str:
    path = Path(sys.argv[0] if sys.argv else "")
    # As `python -m` names it.
    return path.parent.name if path.name == "__main__.py" else path.name
