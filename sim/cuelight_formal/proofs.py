"""Every proof there is."""

from __future__ import annotations

from functools import partial

from cuelight_rtl.params import Params

from .budget import taking
from .completer import payloads, requests, two_masters
from .core import PARTS, WAITS
from .core_promises import steps, waits
from .core_stories import tell
from .courier import delivery
from .credit import credit
from .device import device
from .device_stories import tell_device
from .dispatch import dispatches
from .encode import find_first
from .fifo import first_in_first_out
from .judge import verdicts
from .lanes import completions
from .mode import falls
from .order import order
from .pages import commands, offers
from .passes import members
from .pipelines import ownership
from .proof import Method, Proof
from .queue import lists
from .registers import bus
from .requester import packets
from .scenes import SCENES
from .seats import choices
from .sizes import SmallParams
from .slots import rows
from .trace import refusals, tickets
from .turns import turns
from .walk import stages

__all__ = ["PROOFS"]

_LARGEST = Params(slots=4096, seats=256, lanes=8)
_FEW_SLOTS = SmallParams(slots=4)
_LANES = SmallParams(lanes=4)
_TWO_GROUPS = SmallParams(slots=4, lanes=2)
_CORES = {"core": _FEW_SLOTS, "core_lanes": SmallParams(slots=2, seats=2, lanes=2)}
_FAST_CORE, _FAST_PART = SmallParams(slots=2, seats=2), "promises"
_DEVICE = SmallParams(slots=4, seats=2, stages=5)
_FREE_CYCLES = 12

PROOFS = [
    Proof("judge", partial(verdicts, Params()), Method.LOGIC),
    Proof("judge_largest", partial(verdicts, _LARGEST), Method.LOGIC),
    *(Proof(f"encode_{n}", partial(find_first, n), Method.LOGIC, fast=n == 8) for n in (2, 8, 64, 256)),
    Proof("commands", partial(commands, _FEW_SLOTS), Method.INDUCTION, cover_depth=5, blank=False, fast=True),
    Proof("offers", partial(offers, _FEW_SLOTS), Method.INDUCTION, cover_depth=12, blank=False),
    Proof("bus", partial(bus, SmallParams()), Method.INDUCTION, cover_depth=6, fast=True),
    Proof("slots", partial(rows, SmallParams()), Method.INDUCTION, cover_depth=13, blank=False, fast=True),
    Proof("queue", partial(lists, _FEW_SLOTS), Method.INDUCTION, cover_depth=8, fast=True),
    Proof("turns", partial(turns, _FEW_SLOTS), Method.INDUCTION, cover_depth=8, cut=True),
    Proof("credit", partial(credit, SmallParams()), Method.INDUCTION, cover_depth=7),
    Proof("fifo", partial(first_in_first_out, 5), Method.INDUCTION, cover_depth=9, blank=False, fast=True),
    Proof("rejects", refusals, Method.INDUCTION, cover_depth=5, cut=True, fast=True),
    Proof("trace", partial(tickets, [1, 2, 2]), Method.INDUCTION, cover_depth=6, cut=True),
    Proof("walk", partial(stages, _LANES), Method.INDUCTION, cover_depth=10, fast=True),
    Proof("walk_second", partial(stages, _LANES, second=True), Method.INDUCTION, cover_depth=8, fast=True),
    Proof("dispatch", partial(dispatches, _LANES), Method.INDUCTION, cover_depth=8, fast=True),
    Proof("completions", partial(completions, SmallParams(lanes=2)), Method.INDUCTION, cover_depth=10),
    Proof("pipelines", partial(ownership, _LANES), Method.INDUCTION, cover_depth=4, fast=True),
    Proof("passes", partial(members, SmallParams()), Method.INDUCTION, cover_depth=8, fast=True),
    Proof("budget", partial(taking, SmallParams()), Method.INDUCTION, cover_depth=6),
    Proof("order", partial(order, _TWO_GROUPS), Method.INDUCTION, cover_depth=1, cut=True),
    Proof("completer", requests, Method.INDUCTION, cover_depth=12),
    Proof("completer_payloads", payloads, Method.INDUCTION, cover_depth=14),
    Proof("arbiter", two_masters, Method.INDUCTION, cover_depth=6),
    Proof("seats", partial(choices, SmallParams()), Method.INDUCTION, cover_depth=8),
    *(
        Proof(
            name,
            partial(steps, params),
            Method.INDUCTION,
            blank=False,
            parts=[partial(steps, params, part) for part in PARTS],
            stories=partial(tell, params),
        )
        for name, params in _CORES.items()
    ),
    Proof(
        "core_promises",
        partial(steps, _FAST_CORE, _FAST_PART),
        Method.INDUCTION,
        blank=False,
        stories=partial(tell, _FAST_CORE, _FAST_PART),
        fast=True,
    ),
    *(
        Proof(
            name.replace("core", "waits"),
            partial(waits, params),
            Method.INDUCTION,
            blank=False,
            stories=partial(tell, params, WAITS),
        )
        for name, params in _CORES.items()
    ),
    Proof("courier", partial(delivery, SmallParams(lanes=2)), Method.INDUCTION, cover_depth=26, cut=True),
    Proof("mode", falls, Method.INDUCTION, cover_depth=24),
    Proof("requester", partial(packets, 2), Method.INDUCTION, cover_depth=10),
    Proof(
        "device",
        partial(device, _DEVICE, SCENES[0]),
        Method.BOUNDED,
        depth=_FREE_CYCLES,
        parts=[partial(device, _DEVICE, scene) for scene in SCENES],
        stories=partial(tell_device, _DEVICE, _FREE_CYCLES),
    ),
]
