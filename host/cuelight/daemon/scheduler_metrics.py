"""What the scheduler says about itself, as metrics: read from a snapshot when somebody looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from cuelight.regmap import FallCause, PushMode
from cuelight.snapshot import Snapshot
from cuelight.status import Delivery, GroupState

__all__ = ["SchedulerCollector"]

_COUNTERS = {
    "passes": ("passes", "Passes through the layer stages"),
    "rows": ("rows", "Rows of all passes"),
    "decisions": ("dispatches", "Dispatches: decisions which stage of which pass a lane runs next"),
    "decision_cycles": ("decision_cycles", "Clock cycles from what caused a decision to the decision"),
    "num_preemptions": ("pauses", "Requests that were paused to seat one of a higher tier"),
    "device_admissions": ("admitted", "Requests that the device admitted"),
    "device_retirements": ("retired", "Requests that the device retired"),
    "device_rejects": ("rejected", "Commands that the device refused"),
}
"""Names of metrics, then of the device's own counters. Those have 32 bits, and begin anew with a fresh device."""

_BY_LANE: tuple[tuple[str, str, Callable[[GroupState], float]], ...] = (
    ("seats", "Seats of a lane", lambda group: group.seats),
    ("seats_used", "Seats that are taken", lambda group: group.seated),
    ("seats_decoding", "Seats that decode", lambda group: group.decoding),
    ("device_queued", "Requests that wait for a seat", lambda group: group.queued),
    ("kv_blocks", "KV blocks of a lane", lambda group: group.kv_blocks),
    (
        "kv_cache_usage_perc",
        "Share of KV blocks that are taken, 1 is all",
        lambda group: 1 - group.kv_free / group.kv_blocks if group.kv_blocks else 0.0,
    ),
)

_BY_DELIVERY: tuple[tuple[str, str, Callable[[Delivery], int]], ...] = (
    ("lane_pushed", "Dispatches that the device wrote into a lane's port", lambda delivery: delivery.pushed),
    ("lane_returns", "Times that a lane came to PUSH", lambda delivery: delivery.returns),
    ("lane_late_completions", "Completions that no heartbeat read waited for", lambda delivery: delivery.late),
)


class SchedulerCollector(Collector):
    """Collects without waiting for the device.

    Parameters
    ----------
    snapshot : callable
        The latest snapshot there is; None where there is none.
    healthy : callable
        Whether device and lanes are well.
    waiting, running : callable
        Questions by tier that wait for the device, and that it has.
    levels : callable
        The device's tier of each tier.
    model : str
        What clients call the model.
    """

    def __init__(
        self,
        snapshot: Callable[[], Snapshot | None],
        healthy: Callable[[], bool],
        waiting: Callable[[], Mapping[str, int]],
        running: Callable[[], Mapping[str, int]],
        levels: Callable[[], Mapping[str, int]],
        model: str,
    ) -> None:
        self._snapshot = snapshot
        self._healthy = healthy
        self._waiting = waiting
        self._running = running
        self._levels = levels
        self._model = model

    def describe(self) -> Iterable[Metric]:
        """Nothing: it need not be asked when it is registered."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """What there is at this moment."""
        yield _gauge("num_requests_waiting", "Questions that wait for the device", "tier", self._waiting())
        yield _gauge("num_requests_running", "Questions that the device has", "tier", self._running())
        yield _gauge("tier_level", "The device's tier of a tier, 0 the highest", "tier", self._levels())
        yield _gauge("healthy", "1 while device and lanes are well", None, {"": int(self._healthy())})
        if (snapshot := self._snapshot()) is None:
            return
        status = snapshot.status
        info = {"model": self._model, "device": snapshot.device, "version": status.version, "rtl": status.rtl_hash[:16]}
        yield InfoMetricFamily("cuelight", "What runs", value=info)
        for name, (counter, text) in _COUNTERS.items():
            yield _counter(name, text, None, {"": getattr(status.counters, counter)})
        yield _gauge("slots", "Slots of the device", None, {"": status.slots})
        yield _gauge("slots_used", "Slots that hold a request", None, {"": status.active})
        lanes = [lane for lane, pid in enumerate(snapshot.lane_pids) if pid or status.groups[lane].seated]
        groups = {str(lane): status.groups[lane] for lane in lanes}
        busy = {str(lane): status.lanes[lane].busy_ns / 1e9 for lane in lanes}
        yield _counter("lane_busy_seconds", "Time in which a lane had a dispatch", "lane", busy)
        for name, text, value in _BY_LANE:
            yield _gauge(name, text, "lane", {lane: value(group) for lane, group in groups.items()})
        yield from _delivery({str(lane): status.lanes[lane].delivery for lane in lanes})
        lost = snapshot.failovers
        whats = {"lane": lost.lanes, "device": lost.devices}
        yield _counter("failovers", "Lanes and devices that were lost and replaced", "what", whats)
        yield _counter("requests_replayed", "Requests taken back to be run again", None, {"": lost.replayed})
        yield _counter("requests_given_up", "Requests that ended lane after lane", None, {"": lost.given_up})


def _delivery(lanes: Mapping[str, Delivery]) -> Iterator[Metric]:
    """How dispatches come to lanes. All modes and causes have series from the start, so no first change is missed."""
    mode = GaugeMetricFamily("cuelight_lane_delivery_mode", "1 for a lane's mode, else 0", labels=["lane", "mode"])
    falls = CounterMetricFamily("cuelight_lane_falls", "Times that a lane fell back to POLL", labels=["lane", "cause"])
    for lane, delivery in lanes.items():
        for each in PushMode:
            mode.add_metric([lane, each.name], each == delivery.mode)
        for cause in FallCause:
            falls.add_metric([lane, cause.name], delivery.falls.get(cause, 0))
    yield mode
    yield falls
    for name, text, count in _BY_DELIVERY:
        yield _counter(name, text, "lane", {lane: count(delivery) for lane, delivery in lanes.items()})


def _gauge(name: str, text: str, label: str | None, values: Mapping[str, float]) -> Metric:
    return _fill(GaugeMetricFamily(f"cuelight_{name}", text, labels=[label] if label else []), label, values)


def _counter(name: str, text: str, label: str | None, values: Mapping[str, float]) -> Metric:
    return _fill(CounterMetricFamily(f"cuelight_{name}", text, labels=[label] if label else []), label, values)


def _fill(family: Any, label: str | None, values: Mapping[str, float]) -> Metric:
    for key, value in values.items():
        family.add_metric([key] if label else [], value)
    metric: Metric = family
    return metric
