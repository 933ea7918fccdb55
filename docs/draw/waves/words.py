"""What is written beside writes, commits and dispatches, the longest text first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cuelight import regmap
from cuelight.regmap import CommitKind, FifoRetireHead, PageSchedAttr, RetireReason
from cuelight_rtl.model import Commit

from .stories import Write

__all__ = ["register_of", "tell_bytes", "tell_commit", "tell_dispatch", "tell_retired", "tell_write"]

Texts = Sequence[str]
Names = Mapping[int, str]
"""What requests are called, by id."""
_PARK = {2: "parks at the loop point"}
_CREDIT = {2: "goes on in its seat"}


def register_of(write: Write) -> str:
    """Name of the register that a write reaches."""
    offset = write.offset + (0 if write.strobe & 0xF else 4)
    if offset < regmap.IDENTITY:
        registers = {at: name for name, at in vars(regmap.Page).items() if not name.endswith("_RESET")}
        return registers[write.offset]
    if offset >= regmap.POLL:
        return "POP"
    if offset >= regmap.COMPLETION:
        return "BATCH_DONE" if offset % regmap.COMPLETION_ENTRY_STRIDE == regmap.Completion.BATCH_DONE else "FINISHED"
    return {at: name for name, at in vars(regmap.Fifo).items()}[offset - regmap.FIFO]


def tell_write(write: Write, names: Names) -> Texts:
    """What was written."""
    low, high = write.data & 0xFFFF_FFFF, write.data >> 32
    value = low if write.strobe & 0xF else high
    match register_of(write):
        case "SCHED_ATTR":
            attributes = PageSchedAttr.unpack(write.data)
            rows = _count(attributes.rows, "row")
            return (f"automatic, tier {attributes.tier}, {rows}", rows) if attributes.automatic else ("zero",)
        case "SCHED_CMD":
            parts = [names[high]] * (write.strobe >= 0xF0) + [f"stage {low}"] * (write.strobe & 0xF == 0xF)
            text = ", ".join(parts)
            return (text,) if write.strobe == 0xFF else (f"{tell_bytes(write.strobe)[0]}: {text}", text)
        case "PARK" | "CREDIT":
            return (names[value],)
        case "FINISHED":
            return (f"seat {', '.join(str(seat) for seat in range(32) if value >> seat & 1)}",)
        case "BATCH_DONE" | "POP":
            return f"sequence {value}", str(value)
        case _:
            return f"index {value}", str(value)


def tell_commit(commit: Commit, names: Names) -> Texts:
    """What a step did."""
    name, detail = names.get(commit.id, ""), commit.detail
    match commit.kind:
        case CommitKind.ADMIT if commit.stage >> 3 & 1:
            return f"{name} joins the queue of tier {commit.stage >> 4 & 3}", name
        case CommitKind.ADMIT:
            return f"{name} runs stage {detail}", name
        case CommitKind.SEAT:
            return f"{name} takes seat {commit.stage}", name
        case CommitKind.PLAN:
            return f"pass {commit.stage}, {_count(detail & 0xFFFF, 'decode row')}", f"pass {commit.stage}"
        case CommitKind.CHUNK:
            return f"{name}, {_count(detail >> 20 & 0x3FF, 'row')}", name
        case CommitKind.FORM:
            return f"{_count(detail, 'row')} in all", str(detail)
        case CommitKind.DISPATCH:
            return f"{commit.id}: stage {commit.stage}", str(commit.id)
        case CommitKind.COMPLETE | CommitKind.TAKEN | CommitKind.REOFFERED:
            return f"sequence {commit.id}", str(commit.id)
        case CommitKind.LOOP_POINT:
            return (f"pass {commit.stage}",)
        case CommitKind.RETIRE:
            return f"{name}: {RetireReason(commit.stage).name}", name
        case CommitKind.ADVANCE:
            return f"{name} {'decodes from now on' if detail >> 31 else 'goes on'}", name
        case CommitKind.PARK:
            return f"{name} {_PARK[commit.stage]}", name
        case CommitKind.CREDIT:
            return f"{name} {_CREDIT[commit.stage]}", name
        case CommitKind.PARKED:
            return (f"seat {commit.stage}",)
        case CommitKind.FREE:
            return f"the slot of {name} is free", name
        case _:
            return f"index {detail}", str(detail)


def tell_dispatch(sequence: int, stage: int, k: int, rows: int) -> Texts:
    """A dispatch of pass ``k``."""
    where = f"stage {stage} of pass {k}"
    return (
        *(f"{sequence}: {where}, {_count(rows, 'row')}", f"{sequence}: {where}", where),
        *(f"{sequence}: stage {stage}", f"stage {stage}", str(stage)),
    )


def tell_retired(value: int, names: Names) -> Texts:
    """The register RETIRE_HEAD; nothing where it is not valid."""
    head = FifoRetireHead.unpack(value)
    return (f"{names[head.id]}, index {head.index}", f"index {head.index}") if head.valid else ()


def tell_bytes(strobe: int) -> Texts:
    """Which of eight bytes, which stand together; nothing where there is none."""
    numbers = [byte for byte in range(8) if strobe >> byte & 1]
    return (f"bytes {numbers[0]}–{numbers[-1]}", f"{numbers[0]}–{numbers[-1]}") if numbers else ()


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'s' * (number != 1)}"
