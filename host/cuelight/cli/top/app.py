"""The application behind `cuelight top`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar

from rich.console import RenderableType
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.theme import Theme
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Footer

from cuelight.cli.top import paint, panels
from cuelight.cli.top.history import History, Look
from cuelight.cli.top.scrape import fetch
from cuelight.errors import CuelightError, DeviceClosed
from cuelight.observe import find_devices, observe
from cuelight.snapshot import RequestState

__all__ = ["Top"]

_NOTHING = "No device is running; start one with `cuelight serve`, `cuelight generate` or `cuelight demo`."
_FASTEST_S, _SLOWEST_S = 0.1, 10.0
_Key = tuple[int, str, str]
_ORDERS: tuple[tuple[str, Callable[[RequestState], Any]], ...] = (
    ("age", lambda request: -request.age_s),
    ("tier", lambda request: (request.tier, -request.age_s)),
    ("tokens", lambda request: -request.new_tokens),
)
_THEME = Theme(
    name="cuelight",
    primary=paint.AMBER,
    background=paint.BACKGROUND,
    surface=paint.BACKGROUND,
    panel=paint.BAND,
    foreground=paint.TEXT,
    variables={"footer-key-foreground": paint.AMBER, "footer-background": paint.BAND},
)


class Panel(Widget):
    """A titled box that is made anew from the latest looks."""

    def __init__(self, name: str, title: str) -> None:
        super().__init__(id=name)
        self.border_title = title

    def render(self) -> RenderableType:
        """Draw it."""
        assert isinstance(self.app, Top)
        history = self.app.history
        width, height = self.size.width, self.size.height
        if history is None:
            return Text(self.app.trouble if self.id == "scheduler" else "", paint.DIM)
        match self.id:
            case "scheduler":
                return panels.scheduler(history, width)
            case "lanes":
                return panels.lanes(history, width)
            case "tiers":
                return panels.tiers(history, width)
            case "chart":
                return panels.chart(history, width, height)
            case _:
                return panels.requests(history, width, height, self.app.order)


class Head(Widget):
    """The line above."""

    def render(self) -> RenderableType:
        """Draw it."""
        assert isinstance(self.app, Top)
        if self.app.history is None:
            return Text.assemble((" ○ ", paint.DIM), ("cuelight top", f"bold {paint.AMBER}"))
        return panels.head(self.app.history, self.size.width)


class Top(App[None]):
    """Looks at the devices of this user, and shows one of them.

    Parameters
    ----------
    pid : int, optional
        Only the device of this process.
    interval_s : float
        Seconds between looks.

    Attributes
    ----------
    history : History or None
        What was seen of the device that is shown.
    trouble : str
        Why there is none.
    """

    CSS = f"""
    Screen {{ overflow: hidden; background: {paint.BACKGROUND}; color: {paint.TEXT}; }}
    Head {{ height: 1; background: {paint.BAND}; }}
    Panel {{
        border: round {paint.EDGE}; border-title-color: {paint.AMBER}; border-subtitle-color: {paint.DIM};
        padding: 0 1; height: auto;
    }}
    #above, #left {{ height: auto; }}
    #scheduler {{ width: 1fr; height: 5; }}
    #chart {{ width: 1fr; display: none; height: 100%; }}
    #lanes {{ max-height: 12; }}
    #requests {{ height: 1fr; min-height: 3; }}
    .-wide #above {{ height: 12; }}
    .-wide #left {{ width: 3fr; height: 100%; }}
    .-wide #lanes {{ height: 1fr; max-height: 100%; }}
    .-wide #chart {{ display: block; width: 2fr; }}
    Footer {{ background: {paint.BAND}; }}
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("space", "pause", "pause"),
        Binding("s", "sort", "sort"),
        Binding("tab", "next_device", "next device", priority=True),
        Binding("plus,equals_sign", "faster", "faster", key_display="+"),
        Binding("minus", "slower", "slower", key_display="-"),
    ]

    def __init__(self, pid: int | None = None, interval_s: float = 1.0) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (118, "-wide")]
        self.history: History | None = None
        self.trouble = ""
        self._pid = pid
        self._interval_s = interval_s
        self._histories: dict[_Key, History] = {}
        self._shown: _Key | None = None
        self._paused = False
        self._order = 0
        self._timer: Timer | None = None

    @property
    def order(self) -> Callable[[RequestState], Any]:
        """How requests are sorted."""
        return _ORDERS[self._order][1]

    def compose(self) -> ComposeResult:
        """Lay it out."""
        yield Head()
        with Horizontal(id="above"):
            with Vertical(id="left"):
                yield Panel("scheduler", "scheduler")
                yield Panel("lanes", "lanes")
            yield Panel("chart", "tokens/s")
        yield Panel("tiers", "tiers")
        yield Panel("requests", "requests")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Begin to look."""
        self.register_theme(_THEME)
        self.theme = _THEME.name
        self._set_interval(self._interval_s)
        self.run_worker(self.look())

    async def look(self) -> None:
        """Look once, and show what there is."""
        if self._paused:
            return
        looks, self.trouble = await asyncio.to_thread(_look_at_all, self._pid)
        histories = {}
        for look in looks:
            key = look.snapshot.pid, look.snapshot.device, look.snapshot.title
            if history := self._histories.get(key):
                history.add(look)
            histories[key] = history or History(look)
        self._histories = histories
        if self._shown not in histories:
            self._shown = next(iter(histories), None)
        self._show()

    def action_pause(self) -> None:
        """Look no more, or again."""
        self._paused = not self._paused
        self._show()

    def action_sort(self) -> None:
        """Sort requests by something else."""
        self._order = (self._order + 1) % len(_ORDERS)
        self._show()

    def action_next_device(self) -> None:
        """Show the next device."""
        keys = list(self._histories)
        if self._shown in keys:
            self._shown = keys[(keys.index(self._shown) + 1) % len(keys)]
        self._show()

    def action_faster(self) -> None:
        """Look twice as often."""
        self._set_interval(max(_FASTEST_S, self._interval_s / 2))

    def action_slower(self) -> None:
        """Look half as often."""
        self._set_interval(min(_SLOWEST_S, self._interval_s * 2))

    def _set_interval(self, interval_s: float) -> None:
        if self._timer:
            self._timer.stop()
        self._interval_s = interval_s
        self._timer = self.set_interval(interval_s, lambda: self.run_worker(self.look(), exclusive=True))
        self._show()

    def _show(self) -> None:
        self.history = self._histories.get(self._shown) if self._shown else None
        more = (
            f", device {list(self._histories).index(self._shown) + 1} of {len(self._histories)}"
            if (self._shown and len(self._histories) > 1)
            else ""
        )
        pace = "paused" if self._paused else f"every {self._interval_s:g} s"
        daemon = self.history is not None and self.history.latest.scrape is not None
        for name, title in (
            ("scheduler", f"{pace}{more}"),
            ("tiers", "latencies of the last 30 s" if daemon else "latencies only with cuelight serve"),
            ("requests", f"by {_ORDERS[self._order][0]}"),
        ):
            self.query_one(f"#{name}", Panel).border_subtitle = title
        for widget in (*self.query(Panel), *self.query(Head)):
            widget.refresh(layout=True)


def _look_at_all(pid: int | None) -> tuple[list[Look], str]:
    """Looks at all devices there are, oldest first, and why there is none."""
    looks, trouble = [], _NOTHING
    for path in find_devices():
        try:
            snapshot = observe(path)
        except DeviceClosed:
            continue
        except CuelightError as error:
            trouble = str(error)
            continue
        if pid in (None, snapshot.pid):
            looks.append(Look(snapshot, fetch(snapshot.url) if snapshot.url else None))
    return looks, trouble
