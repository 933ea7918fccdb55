"""Every proof there is."""

from __future__ import annotations

from cuelight_rtl.params import Params

from .credit import credit
from .encode import find_first
from .fifo import first_in_first_out
from .judge import verdicts
from .pages import commands, offers
from .proof import Method, Proof
from .queue import lists
from .sizes import SmallParams
from .slots import rows
from .trace import refusals, tickets

__all__ = ["PROOFS"]

PROOFS = [
    Proof("judge", lambda: verdicts(Params()), Method.LOGIC, fast=True),
    Proof("judge_largest", lambda: verdicts(Params(slots=4096, seats=256, lanes=8)), Method.LOGIC),
    *(Proof(f"encode_{width}", lambda width=width: find_first(width), Method.LOGIC, fast=width == 8) for width in (2, 8, 64, 256)),
    Proof("slots", lambda: rows(SmallParams()), Method.INDUCTION, cover_depth=13, fast=True, blank=False),
    Proof("queue", lambda: lists(SmallParams(slots=4)), Method.INDUCTION, cover_depth=10),
    Proof("commands", lambda: commands(SmallParams(slots=4)), Method.INDUCTION, cover_depth=5, fast=True, blank=False),
    Proof("offers", lambda: offers(SmallParams(slots=4)), Method.INDUCTION, cover_depth=16, blank=False),
    Proof("credit", lambda: credit(SmallParams()), Method.INDUCTION, cover_depth=7, fast=True),
    Proof("fifo", lambda: first_in_first_out(5), Method.INDUCTION, cover_depth=9, blank=False, fast=True),
    Proof("trace", lambda: tickets([2, 4, 2]), Method.INDUCTION, cover_depth=6, cut=True),
    Proof("rejects", refusals, Method.INDUCTION, cover_depth=5, cut=True, fast=True),
]
