"""The panels of `cuelight top`, each made from what was seen of a device."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cuelight.cli.top import paint
from cuelight.cli.top.history import History
from cuelight.regmap import PushMode
from cuelight.snapshot import RequestState, Snapshot
from cuelight.status import Delivery, GroupState, LaneState

__all__ = ["chart", "head", "lanes", "requests", "scheduler", "tiers"]

_MODES = {
    PushMode.POLL: paint.DIM,
    PushMode.PROBING: paint.AMBER,
    PushMode.PUSH: paint.GREEN,
    PushMode.FALLING: paint.RED,
}
_WIDE = 100


def head(history: History, width: int) -> Text:
    """What runs, for how long, and how it is."""
    now = history.latest.snapshot
    left = Text(no_wrap=True, overflow="ellipsis")
    well, how = _health(history)
    light = paint.GREEN if well else paint.RED
    left.append(" ● ", light).append("cuelight top", f"bold {paint.AMBER}").append("  ")
    left.append(now.title or now.device, f"bold {paint.TEXT}").append(f" on {now.device}", paint.DIM)
    if width >= _WIDE:
        left.append(f"   {now.program or 'program'}, process {now.pid}", paint.DIM)
    right = Text(f"up {paint.duration(now.uptime_s)}  ", paint.DIM)
    right.append(how, f"bold {light}").append(" ")
    left.truncate(max(0, width - right.cell_len), overflow="ellipsis", pad=True)
    return left.append_text(right)


def scheduler(history: History, width: int) -> RenderableType:
    """Slots, and the pace of decisions."""
    now = history.latest.snapshot
    status = now.status
    slots = Text("slots  ", paint.DIM)
    slots.append_text(paint.bar(status.active / status.slots, max(10, width - 28), paint.AMBER))
    slots.append(f"  {status.active:,}", paint.TEXT).append(f" of {status.slots:,}", paint.DIM)

    def pace(name: str) -> float | None:
        return history.rate(lambda snapshot: getattr(snapshot.status.counters, name))

    passes, rows, decisions = pace("passes"), pace("rows"), pace("dispatches")
    cycles = history.rate(lambda snapshot: snapshot.status.counters.decision_cycles & 0xFFFF_FFFF)
    lost = now.failovers
    figures = [
        ("passes/s", paint.rate(passes)),
        ("rows/pass", paint.rate(rows / passes if rows and passes else None)),
        ("decisions/s", paint.rate(decisions)),
        ("cycles each", paint.rate(cycles / decisions if cycles and decisions else None)),
        ("paused", paint.count(status.counters.pauses)),
        ("refused", paint.count(status.counters.rejected)),
        ("failovers", paint.count(lost.lanes + lost.devices)),
        ("given up", paint.count(lost.given_up)),
    ]
    across = 4
    grid = Table.grid(padding=(0, 1), expand=True)
    for _ in range(across):
        grid.add_column(no_wrap=True, ratio=1)
    texts = [Text.assemble((f"{name} ", paint.DIM), (value, paint.TEXT)) for name, value in figures]
    for first in range(0, len(texts), across):
        grid.add_row(*texts[first : first + across])
    return Group(slots, grid)


def lanes(history: History, width: int) -> RenderableType:
    """Each lane's state, how dispatches come to it, its share of time at work, its seats and its KV blocks."""
    now = history.latest.snapshot
    parts = [
        _lane(history, number, lane, group, width)
        for number, (lane, group) in enumerate(zip(now.status.lanes, now.status.groups, strict=True))
        if now.lane_pids[number] or group.seated or group.queued
    ]
    return Group(*parts) if parts else Text("no lane is at work", paint.DIM)


def _lane(history: History, number: int, lane: LaneState, group: GroupState, width: int) -> Text:
    pid = history.latest.snapshot.lane_pids[number]
    if lane.resetting:
        sign, state, colour = "●", "resetting", paint.RED
    elif not pid:
        sign, state, colour = "○", "no process", paint.RED
    elif lane.outstanding:
        sign, state, colour = "●", f"stage {lane.stage}", paint.GREEN
    else:
        sign, state, colour = "○", "idle", paint.DIM
    busy = history.busy(number)
    used = group.kv_blocks - group.kv_free
    length = max(8, (width - 58) // 2 + 8)
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{number} ", f"bold {paint.TEXT}").append(f"{sign} ", colour).append(f"{state:<10}", colour)
    text.append(" busy ", paint.DIM).append_text(paint.bar(busy or 0.0, length, _heat(busy or 0.0)))
    text.append(f"{'–' if busy is None else f'{busy:.0%}':>5}", paint.TEXT)
    text.append("   KV ", paint.DIM).append_text(
        paint.bar(used / group.kv_blocks if group.kv_blocks else 0.0, length, paint.TIERS[2])
    )
    text.append(f" {used}", paint.TEXT).append(f"/{group.kv_blocks}\n", paint.DIM)
    mode, falls = lane.delivery.mode, _falls(lane.delivery)
    text.append(f"    {mode.name:<9}", _MODES[mode]).append("seats ", paint.DIM)
    prefilling = group.seated - group.decoding - group.parked
    strip = [(group.decoding, "■", paint.GREEN), (prefilling, "■", paint.AMBER), (group.parked, "▫", paint.TEXT)]
    text.append_text(paint.cells(strip, group.seats, width - 45 - len(falls)))
    text.append(f"  {group.seated}", paint.TEXT).append(f"/{group.seats}", paint.DIM)
    text.append("  queued ", paint.DIM).append(str(group.queued), paint.AMBER if group.queued else paint.TEXT)
    return text.append(falls, paint.AMBER)


def _falls(delivery: Delivery) -> str:
    """How often a lane fell, and why it did last; nothing if it never did."""
    if delivery.cause is None:
        return ""
    return f"  falls {paint.count(sum(delivery.falls.values()))}, {delivery.cause.name}"


def tiers(history: History, width: int) -> RenderableType:
    """Queues, pace and latencies of each tier."""
    now = history.latest.snapshot
    wide = width >= _WIDE
    table = Table.grid(padding=(0, 1 if width < _WIDE else 2), expand=True)
    table.add_column(no_wrap=True)
    headings = ["waits", "runs", "tok/s"]
    for _ in headings:
        table.add_column(justify="right", no_wrap=True)
    shown = _LATENCIES if wide else _LATENCIES[:2]
    for _ in shown:
        table.add_column(justify="right", no_wrap=True)
        table.add_column(justify="right", no_wrap=True)
    if wide:
        table.add_column(justify="right", no_wrap=True)
    names = [cell for heading, _ in shown for cell in (heading, "p99")]
    table.add_row("", *headings, *names, *(["refused"] if wide else []), style=paint.DIM)
    for tier in range(len(now.waiting)):
        live = [request for request in now.requests if request.tier == tier]
        waits = now.waiting[tier] + int(history.told("num_requests_waiting", tier) or 0)
        refused = int(history.told("rejects_total", tier) or 0)
        pace = history.token_rate(tier)
        cells: list[RenderableType] = [
            Text.assemble(("● " if live else "○ ", paint.TIERS[tier]), (history.name(tier), paint.TIERS[tier])),
            Text(str(waits), f"bold {paint.AMBER}" if waits else paint.DIM),
            Text(str(len(live)), paint.TEXT if live else paint.DIM),
            Text(paint.rate(pace), paint.TEXT if pace else paint.DIM),
        ]
        for _, name in shown:
            for share in (0.5, 0.99):
                value = history.latency(share, name, tier)
                cells.append(Text(paint.seconds(value), paint.DIM if value is None else paint.TEXT))
        if wide:
            cells.append(Text(paint.count(refused), paint.RED if refused else paint.DIM))
        table.add_row(*cells)
    return table


_LATENCIES = (
    ("first p50", "time_to_first_token_seconds"),
    ("next p50", "inter_token_latency_seconds"),
    ("queue p50", "request_queue_time_seconds"),
    ("whole p50", "e2e_request_latency_seconds"),
)


def chart(history: History, width: int, height: int) -> RenderableType:
    """New tokens per second, by tier, stacked; the latest look at the right."""
    series = history.token_series(max(1, width - 7))
    picture, top = paint.columns(series, paint.TIERS, max(1, width - 7), max(1, height))
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", width=5, style=paint.DIM)
    grid.add_column(no_wrap=True)
    scale = "\n".join([paint.count(top), *[""] * max(0, height - 2), "0"])
    grid.add_row(scale, picture)
    return grid


def requests(history: History, width: int, height: int, order: Callable[[RequestState], object]) -> RenderableType:
    """As many requests as there is room for, and how many more there are."""
    live = sorted(history.latest.snapshot.requests, key=order)  # type: ignore[arg-type]
    if not live:
        return Text("no requests", paint.DIM)
    # One line for the headings, and one for those left out.
    fit = len(live) if len(live) < height else max(0, height - 2)
    length = min(72, max(8, width - 62))
    table = Table.grid(padding=(0, 2), expand=False)
    for _ in range(2):
        table.add_column(no_wrap=True)
    for _ in range(2):
        table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    for _ in range(2):
        table.add_column(justify="right", no_wrap=True)
    table.add_row("request", "tier", "prompt", "tokens", "", "tok/s", "age", style=paint.DIM)
    for request in live[:fit]:
        colour = paint.TIERS[request.tier % len(paint.TIERS)]
        table.add_row(
            Text(f"{request.id:08x}", paint.DIM),
            Text(history.name(request.tier), colour),
            str(request.prompt_tokens),
            Text.assemble(str(request.new_tokens), (f"/{request.max_new_tokens}", paint.DIM)),
            paint.bar(request.new_tokens / request.max_new_tokens, length, colour),
            _pace(history, request),
            Text(paint.duration(request.age_s), paint.DIM),
        )
    return table if fit == len(live) else Group(table, Text(f"and {len(live) - fit} more", paint.DIM))


def _pace(history: History, request: RequestState) -> Text:
    if request.parked:
        return Text("parked", paint.AMBER)
    if not request.new_tokens:
        return Text("–", paint.DIM)
    return Text(paint.rate(history.request_rate(request.id)), paint.TEXT)


def _health(history: History) -> tuple[bool, str]:
    now: Snapshot = history.latest.snapshot
    scrape = history.latest.scrape
    told = scrape.value("healthy") if scrape else None
    missing = [lane for lane, group in enumerate(now.status.groups) if group.seated and not now.lane_pids[lane]]
    if told == 0.0 or missing:
        return False, f"lane {missing[0]} is gone" if missing else "not well"
    return True, "well"


def _heat(share: float) -> str:
    return paint.GREEN if share < 0.9 else paint.AMBER
