"""`cuelight top` beside running devices, as it looks at two sizes of the terminal, and what its keys do."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from prometheus_client import CollectorRegistry
from textual.app import App
from textual.pilot import Pilot

from cuelight.cli import main
from cuelight.cli.top import app as module
from cuelight.cli.top.app import Top
from cuelight.cli.top.paint import bar, columns, count, rate, seconds
from cuelight.cli.top.scrape import Scrape
from cuelight.daemon.metrics import Metrics, render
from cuelight.device import Device
from cuelight.observe import FOLDER, SUFFIX, observe
from cuelight.request import Token

from .checks import until
from .fallen import fallen
from .lane import STAGES, InstantLane

SMALL, LARGE = (80, 24), (140, 45)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """A device with five live requests, of which its lane will never hear; the only one that is looked at."""
    device = Device.open("twin", slots=64, seats=16, title="a model")
    device.configure(stages=STAGES, kv_blocks=32, block_positions=16)
    for tier in (0, 0, 1, 2, 3):
        device.submit([1, 2, 3], 20, tier=tier)
    monkeypatch.setattr(module, "find_devices", lambda: [FOLDER / f"{device.segment.path.name}{SUFFIX}"])
    yield device
    device.close(0.0)


def run(script: Callable[[Top, Pilot[None]], Awaitable[None]], size: tuple[int, int] = SMALL) -> None:
    """Play a script on the application, which looks only when the script says so."""

    async def play() -> None:
        top = Top(interval_s=3600)
        async with top.run_test(size=size) as pilot:
            await pilot.app.workers.wait_for_complete()
            await top.look()
            await pilot.pause()
            await script(top, pilot)

    asyncio.run(play())


def screen(app: App[None]) -> list[str]:
    """What the terminal shows, line by line."""
    width, height = app.size
    lines = ["".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()]
    assert len(lines) == height
    assert {len(line) for line in lines} == {width}
    return lines


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_it_shows_slots_seats_lanes_queues_and_requests(device: Device, size: tuple[int, int]) -> None:
    async def script(top: Top, pilot: Pilot[None]) -> None:
        lines = screen(top)
        said = "\n".join(lines)
        assert "a model on twin" in lines[0]
        assert re.search(r"slots .* 5 of 64", said)
        assert re.search(r"seats .* 5/16", said)
        for name, runs in (("vip", 2), ("standard", 1), ("best-effort", 1)):
            assert re.search(rf"● {name} +0 +{runs} ", said)
        shown = sum(f"{request.id:08x}" in said for request in device.requests)
        more = re.search(r"and (\d+) more", said)
        assert shown + (int(more[1]) if more else 0) == 5
        assert ("tokens/s" in said) == (size == LARGE)
        assert "q quit" in lines[-1]

    run(script, size)


def test_a_panel_is_cut_nowhere_in_the_middle_of_a_number(device: Device) -> None:
    """At the smallest size that is promised no line is cut."""

    async def script(top: Top, pilot: Pilot[None]) -> None:
        assert "…" not in "".join(screen(top)[1:])

    run(script)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_lane_shows_how_dispatches_come_to_it(
    device: Device, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    """And why it fell, if it did."""

    async def script(top: Top, pilot: Pilot[None]) -> None:
        assert re.search(r"^│ +POLL +seats .* queued 0 +│", "\n".join(screen(top)), re.MULTILINE)
        monkeypatch.setattr(module, "observe", lambda path: fallen(observe(path)))
        await top.look()
        await pilot.pause()
        lines = screen(top)
        assert re.search(r"^│ +PUSH +seats .* 5/16  queued 0  falls 13, OVERDUE +│", "\n".join(lines), re.MULTILINE)
        assert "…" not in "".join(lines[1:])

    run(script, size)


def test_rates_come_with_the_second_look(device: Device) -> None:
    async def script(top: Top, pilot: Pilot[None]) -> None:
        assert re.search(r"passes/s (–|0 )", "\n".join(screen(top)))
        lane = InstantLane(device)
        lane.start()
        until(lambda: not device.requests)
        await top.look()
        await pilot.pause()
        said = "\n".join(screen(top))
        assert not re.search(r"passes/s (–|0 )", said)
        assert re.search(r"slots .* 0 of 64", said)
        assert "no requests" in said
        lane.stop()

    run(script)


def test_latencies_come_from_the_daemon_s_metrics(device: Device) -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    text = b'# TYPE cuelight_tier_level gauge\ncuelight_tier_level{tier="gold"} 0\n'

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(text + render(registry, "")[0])

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        device.url = f"http://127.0.0.1:{server.server_port}"

        async def script(top: Top, pilot: Pilot[None]) -> None:
            assert "gold" in "\n".join(screen(top))
            record = metrics.question("gold", asked_ns=0, prompt_tokens=3)
            record.take(0, [Token(3, 5, 0.0, None, 40_000_000), Token(4, 5, 0.0, None, 60_000_000)])
            await top.look()
            await pilot.pause()
            (line,) = (line for line in screen(top) if "gold" in line and "●" in line and "ms" in line)
            # Within their buckets: 30 to 50 ms, and 15 to 20 ms.
            first, _, between, _ = (float(found) for found in re.findall(r"([\d.]+) ms", line))
            assert 30 <= first <= 50
            assert 15 <= between <= 20

        run(script)
        server.shutdown()


def test_keys_pause_sort_and_change_the_pace(device: Device) -> None:
    async def script(top: Top, pilot: Pilot[None]) -> None:
        for key, shown in (("s", "by tier"), ("s", "by tokens"), ("s", "by age"), ("+", "every 1800 s")):
            await pilot.press(key)
            await pilot.pause()
            assert shown in "\n".join(screen(top))
        await pilot.press("space")
        device.requests[0].cancel()
        await top.look()
        await pilot.pause()
        said = "\n".join(screen(top))
        assert "paused" in said
        assert re.search(r"slots .* 5 of 64", said)
        await pilot.press("q")

    run(script)


def test_tab_goes_to_the_next_device(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    with Device.open("twin", slots=64, seats=16, title="another") as other:
        paths = [FOLDER / f"{one.segment.path.name}{SUFFIX}" for one in (device, other)]
        monkeypatch.setattr(module, "find_devices", lambda: paths)

        async def script(top: Top, pilot: Pilot[None]) -> None:
            assert "a model" in screen(top)[0]
            await pilot.press("tab")
            await pilot.pause()
            assert "another" in screen(top)[0]
            assert "device 2 of 2" in "\n".join(screen(top))

        run(script)


def test_nothing_running_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_devices", list)

    async def script(top: Top, pilot: Pilot[None]) -> None:
        assert "No device is running" in "\n".join(screen(top))
        await pilot.press("s", "tab", "space")

    run(script)


def test_it_needs_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top"]) == 1
    assert capsys.readouterr().err.startswith("cuelight: cuelight top needs a terminal;")


def test_quantiles_are_linear_within_a_bucket() -> None:
    text = "".join(
        f'cuelight_x_bucket{{tier="vip",le="{bound}"}} {count}\n'
        for bound, count in (("1", 10), ("2", 20), ("+Inf", 20))
    )
    now = Scrape.parse(f"# TYPE cuelight_x histogram\n{text}")
    assert now.quantile(0.5, "x", "vip") == 1.0
    assert now.quantile(0.75, "x", "vip") == 1.5
    assert now.quantile(0.5, "x", "vip", before=now) is None
    assert now.quantile(0.5, "x", "standard") is None


def test_numbers_are_short() -> None:
    assert [count(value) for value in (0, 999, 9999, 12_345, 1_234_567)] == ["0", "999", "9,999", "12.3k", "1.23M"]
    assert [rate(value) for value in (None, 0.0, 3.14159, 250.4)] == ["–", "0", "3.1", "250"]
    assert [seconds(value) for value in (None, 0.0123, 0.999, 1.5, 75)] == ["–", "12.3 ms", "999 ms", "1.50 s", "75 s"]
    assert bar(0.0, 8, "red").plain == "━" * 8
    assert "╸" in bar(0.001, 8, "red").plain
    picture, top = columns([[1.0, 2.0], [4.0, 0.0]], ("red", "blue"), 3, 2)
    assert top == 4.0
    assert picture.plain == "   \n".replace("   ", " ▄█") + " ██"
