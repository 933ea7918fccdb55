"""What a random run must have reached before it proves anything."""

from __future__ import annotations

from cuelight.regmap import PAGE_COUNT, CommitKind, RejectReason, RetireReason

from .slots import SlotState
from .state import Sizes
from .tiers import TIERS

__all__ = ["EFFECTS", "SETTINGS", "goals"]

_SITUATIONS = ("idle", "resetting", "forming", "loop point", "dispatch out", "pass alive")


def goals(sizes: Sizes) -> list[str]:
    """Names of everything that a long run has to reach, on a device of these sizes."""
    return [
        *(f"commit {kind.name}" for kind in CommitKind),
        *(f"reject {reason.name}" for reason in RejectReason),
        *(f"retire {reason.name}" for reason in RetireReason),
        *(f"retire while {situation}" for situation in ("resetting", "loop point", "idle")),
        *(f"cancel {state.name}" for state in SlotState if state not in (SlotState.FREE, SlotState.RETIRED)),
        *(f"cancel seated while {situation}" for situation in _SITUATIONS),
        "cancel marked again",
        *(f"reset while {situation}" for situation in _SITUATIONS),
        "reset with requests queued and seated",
        *(f"{what} {cut}" for what in ("command", "attributes") for cut in _CUTS),
        "half command discarded",
        "bytes overwritten",
        "manual admission with attributes",
        "admission with an epoch of one's own",
        *(f"admission from page {page}" for page in range(PAGE_COUNT)),
        *(f"tier {tier} seated" for tier in range(TIERS)),
        *(f"lane {lane} dispatched" for lane in range(sizes.lanes)),
        "full house with a queue",
        "no free slot",
        "long prompt prefilled",
        "prompt of one row prefilled",
        "prompt at a start position",
        "pass of chunks and decode rows",
        "pass of decode rows only",
        "pass that does not sample",
        "pass of 16 entries",
        "pass at the end of its row budget",
        "finished seat outside the pass",
        "finished words in several writes",
        "finished words in a wrong entry",
        "finished words with nothing outstanding",
        "completion of an old sequence",
        "completion of a sequence to come",
        "completion in a wrong entry",
        "completion twice",
        "completion before the dispatch was taken",
        "sequence wraps its low half",
        "sequence wraps its high half",
        *(f"{fifo} pop {kind}" for fifo in ("reject", "retirement", "trace", "poll") for kind in ("right", "stale")),
        "reject FIFO full",
        "event trace full",
        *(f"{register} accepted" for register in SETTINGS),
        *(f"{register} refused" for register in _VALIDATED),
        *(f"{what} {EFFECTS[what][code]}" for what in EFFECTS for code in range(len(EFFECTS[what]))),
        *(f"{what} seated while {situation}" for what in ("park", "credit") for situation in _SITUATIONS),
        *(f"pause of a {what} request" for what in ("decoding", "prefilling", "parked")),
        "stepped request parked",
        "stepped request went on with a credit",
        "decoding request seated",
        "seat to a tier below its minimum before a higher one",
        "full house that minimum seats protect",
        "seat to a lower tier past one held back by its floor",
        "seats kept free by a floor",
        "binding of a decoding seat",
        *(["unbound seats left for the next pass"] if sizes.seats > 16 else []),
        "chunk cut to minimum rows",
        "chunk cut to the cost budget",
        "chunk beyond the cost budget",
        "tier without rows passed over",
        "KV floor kept an admission out",
        "two dispatches outstanding",
        "completion of the younger of two dispatches",
        "completion by STAGE_DONE",
        "STAGE_DONE of a member twice",
        *_SECOND_PASSES,
        *(_pipeline_goals(sizes.lanes) if sizes.lanes > 1 else []),
        "read under way",
        "random write",
        "model reset",
    ]


EFFECTS = {
    "park": ("ignored", "taken out of its queue", "begun", "idle", "used up a credit"),
    "credit": ("ignored", "queues again", "goes on", "remembered", "idle"),
}
_CUTS = ("whole", "low half first", "high half first", "in pairs", "in bytes", "unaligned")
"""Ways in which the eight bytes of a command arrive."""
_VALIDATED = (
    "PAGE_ENABLE",
    "STAGE_COUNT",
    "SEATS",
    "ROWS",
    "KV_BLOCKS",
    "SEQUENCE",
    "DEPTH",
    "COST_DECODE",
    "MIN_SEATS",
    "MIN_ROWS",
    "KV_FLOOR",
    "SEAT_FLOOR",
    "PIPELINE",
    "FIRST_STAGE",
)
SETTINGS = (*_VALIDATED, "COST", "COST_CHUNK")


_SECOND_PASSES = (
    "second pass formed",
    "second pass of several chunks",
    "second pass beside decode rows",
    "second pass that does not sample",
    "second pass goes first",
    "seat of a second pass decodes in pass 0",
    "loop point of the second pass while pass 0 lives",
    "loop point of pass 0 while the second pass lives",
    "pass 0 formed beside the second pass",
    "loop points due at once",
    *(f"{what} beside a pass alive" for what in ("CANCELLED", "PARKED", "PAUSE", "SEAT")),
    "loop point beside a marked seat of another pass",
)


def _pipeline_goals(lanes: int) -> list[str]:
    pipelines = [count for count in (2, 4, 8) if count <= lanes]
    return [
        *(f"pipeline of {count} with passes side by side" for count in pipelines),
        *(f"pipeline of {count} with all its passes" for count in pipelines),
        *(f"pass goes on to the next lane {how} binding" for how in ("with", "without")),
        "pass on a single lane of a pipeline",
        "lane stays with a pass while another waits",
        "admission to an absorbed group",
        "reset of an absorbed group",
        "reset of a pipeline",
        *(["lane claimed by two pipelines", "lane turns to another pass while one more waits"] if lanes >= 4 else []),
    ]
