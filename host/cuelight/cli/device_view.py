"""A running device as a page of a terminal."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from cuelight.regmap import PushMode
from cuelight.snapshot import RequestState, Snapshot
from cuelight.status import Delivery
from cuelight.tiers import tier_name

__all__ = ["DeviceView"]

BAR = 16
LANE_SIZES = ((110, BAR, 2), (78, 6, 1), (0, 0, 1))
"""Columns of the terminal from which a lane's bars have this length, and so many spaces are between columns."""

MODE_STYLES = {PushMode.POLL: "dim", PushMode.PROBING: "yellow", PushMode.PUSH: "green", PushMode.FALLING: "red"}
TIER_STYLES = ("bold magenta", "cyan", "blue", "yellow")


class DeviceView:
    """Renders a snapshot; an earlier one of the same device adds rates.

    Parameters
    ----------
    snapshot : Snapshot
        What to show.
    before : Snapshot, optional
        One from some time before.
    lines : int, optional
        Lines it may take: requests that don't fit are counted only.
    """

    def __init__(self, snapshot: Snapshot, before: Snapshot | None = None, lines: int | None = None) -> None:
        self._now = snapshot
        self._before = before if before and before.status.boot_nonce == snapshot.status.boot_nonce else None
        self._lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        bar, gap = next((bar, gap) for columns, bar, gap in LANE_SIZES if options.max_width >= columns)
        blocks = [self._head(), self._slots(), self._lanes(bar, gap), self._tiers(), self._counters()]
        parts: list[RenderableType] = [part for block in blocks for part in (block, Text())]
        taken = sum(len(console.render_lines(part, options)) for part in parts)
        requests = self._requests(None if self._lines is None else self._lines - taken, bar)
        yield Group(*parts[:-1]) if requests is None else Group(*parts, requests)

    def _head(self) -> Text:
        now = self._now
        head = Text(no_wrap=True, overflow="ellipsis")
        head.append(now.device, "bold").append(f"  {now.title}  " if now.title else "  ")
        who = f"{now.program}, " if now.program else ""
        head.append(f"{who}process {now.pid}, up {_duration(now.uptime_s)}\n", "dim")
        head.append(
            f"version {now.status.version}  RTL {now.status.rtl_hash[:16]}  {now.status.stages} stages  "
            f"{now.status.cycles:,} cycles",
            "dim",
        )
        return head

    def _slots(self) -> Text:
        status = self._now.status
        return Text.assemble("slots  ", _bar(status.active, status.slots, 32), f"  {status.active} of {status.slots:,}")

    def _lanes(self, bar: int, gap: int) -> RenderableType:
        table = _table(gap)
        table.add_column("lane", justify="right")
        table.add_column("state", min_width=9)
        table.add_column("mode", no_wrap=True)
        for heading in ("process", "passes", "busy", "queued"):
            table.add_column(heading, justify="right", no_wrap=True)
        for heading in ("seats", "KV blocks"):
            table.add_column(heading, no_wrap=True)
        for index, (lane, group) in enumerate(zip(self._now.status.lanes, self._now.status.groups, strict=True)):
            pid = self._now.lane_pids[index]
            if lane.resetting:
                state = Text("resetting", "red")
            elif lane.outstanding:
                state = Text(f"stage {lane.stage}", "green")
            else:
                state = Text("idle", "dim")
            used = group.kv_blocks - group.kv_free
            table.add_row(
                str(index),
                state,
                Text(lane.delivery.mode.name, MODE_STYLES[lane.delivery.mode]),
                str(pid) if pid else Text("none", "dim"),
                f"{lane.passes:,}",
                self._busy(index),
                str(group.queued),
                Text.assemble(
                    _bar(group.decoding, group.seats, bar, group.seated - group.decoding),
                    f" {group.seated}/{group.seats}",
                ),
                Text.assemble(_bar(used, group.kv_blocks, bar), f" {used}/{group.kv_blocks}"),
            )
        lanes = enumerate(self._now.status.lanes)
        return Group(table, *(_falls(index, lane.delivery) for index, lane in lanes if lane.delivery.cause))

    def _busy(self, lane: int) -> str:
        busy_ns = self._now.status.lanes[lane].busy_ns
        if self._before is None:
            return f"{busy_ns / 1e9:.1f} s"
        past_ns = self._now.status.time_ns - self._before.status.time_ns
        share = (busy_ns - self._before.status.lanes[lane].busy_ns) / past_ns if past_ns > 0 else 0.0
        return f"{min(1.0, share):.0%}"

    def _tiers(self) -> Table:
        table = _table()
        table.add_column("tier", min_width=11)
        for heading in ("waiting for room", "on the device", "giving tokens", "tokens"):
            table.add_column(heading, justify="right")
        table.add_column("tokens/s" if self._before else "", justify="right", min_width=8)
        for tier, waiting in enumerate(self._now.waiting):
            live = [request for request in self._now.requests if request.tier == tier]
            giving = sum(request.new_tokens > 0 for request in live)
            tokens = sum(request.new_tokens for request in live)
            busy = bool(waiting or live)
            table.add_row(
                Text(tier_name(tier), TIER_STYLES[tier % len(TIER_STYLES)]),
                *(str(count) if busy else "" for count in (waiting, len(live), giving, tokens)),
                self._rate(live) if busy else "",
                style="" if busy else "dim",
            )
        return table

    def _rate(self, live: list[RequestState]) -> str:
        if self._before is None or (past_s := self._now.uptime_s - self._before.uptime_s) <= 0:
            return ""
        earlier = {request.id: request.new_tokens for request in self._before.requests}
        fresh = sum(request.new_tokens - earlier.get(request.id, 0) for request in live)
        return f"{fresh / past_s:.1f}"

    def _counters(self) -> RenderableType:
        counters = self._now.status.to_dict()["counters"]
        before = self._before.status.to_dict()["counters"] if self._before else None
        past_s = self._now.uptime_s - self._before.uptime_s if self._before else 0.0
        shown = [
            (name.replace("_", " "), f"{value:,}", _per_second(value - before[name], past_s) if before else "")
            for name, value in counters.items()
            if value
        ]
        if not shown:
            return Text("all counters are 0", "dim")
        table = Table.grid(padding=(0, 2))
        for _ in range(2):
            table.add_column(style="dim")
            table.add_column(justify="right")
            table.add_column(justify="right", style="dim", min_width=9 if before else 0)
        half = -(-len(shown) // 2)
        for index in range(half):
            right = shown[half + index] if half + index < len(shown) else ("", "", "")
            table.add_row(*shown[index], *right)
        return table

    def _requests(self, lines: int | None, bar: int) -> RenderableType | None:
        requests = self._now.requests
        if not requests:
            return Text("no requests", "dim")
        if lines is not None and lines < 2:
            return None
        # One line for the headings, and one for those left out.
        fit = len(requests) if lines is None or len(requests) <= lines - 1 else lines - 2
        table = _table()
        table.add_column("request")
        table.add_column("tier")
        for heading in ("lane", "prompt", "tokens"):
            table.add_column(heading, justify="right")
        table.add_column("", no_wrap=True)
        for heading in ("tokens/s" if self._before else "", "age"):
            table.add_column(heading, justify="right")
        for request in requests[:fit]:
            table.add_row(
                f"{request.id:#010x}",
                Text(tier_name(request.tier), TIER_STYLES[request.tier % len(TIER_STYLES)]),
                str(request.group),
                str(request.prompt_tokens),
                f"{request.new_tokens}/{request.max_new_tokens}",
                _bar(request.new_tokens, request.max_new_tokens, bar),
                Text("parked", "yellow") if request.parked else self._rate([request]),
                _duration(request.age_s),
            )
        if fit == len(requests):
            return table
        return Group(table, Text(f"and {len(requests) - fit} more", "dim"))


def _falls(lane: int, delivery: Delivery) -> Text:
    """Why a lane fell, and how often."""
    assert delivery.cause
    causes = ", ".join(f"{cause.name} {count:,}" for cause, count in delivery.falls.items())
    return Text(f"lane {lane} fell to POLL, last by {delivery.cause.name}: {causes}", "yellow")


def _table(gap: int = 2) -> Table:
    return Table(box=None, header_style="dim", pad_edge=False, padding=(0, gap, 0, 0))


def _bar(count: int, whole: int, width: int, lighter: int = 0) -> Text:
    """Cells for `count` of `whole`, then paler ones for `lighter` more; what is there has a cell at least."""
    cells = [max(part * width // whole, part > 0) if whole else 0 for part in (count, count + lighter)]
    full, both = cells[0], max(cells)
    return Text.assemble(("█" * full, "green"), ("▒" * (both - full), "yellow"), ("░" * (width - both), "dim"))


def _per_second(change: int, past_s: float) -> str:
    # Counters wrap at 32 bits.
    return f"+{(change & 0xFFFF_FFFF) / past_s:,.0f}/s" if change and past_s > 0 else ""


def _duration(seconds: float) -> str:
    whole = int(seconds)
    if whole < 60:
        return f"{seconds:.1f} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    return f"{whole // 3600}:{whole % 3600 // 60:02}:{whole % 60:02}"
