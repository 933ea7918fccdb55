"""What is counted for questions that end in every way, and what the dashboard asks of it."""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import openai
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from cuelight import LLM
from cuelight.daemon.failures import Busy
from cuelight.daemon.metrics import Metrics, render
from cuelight.daemon.scheduler_metrics import SchedulerCollector
from cuelight.device import Device
from cuelight.errors import LaneError
from cuelight.regmap import FallCause
from cuelight.request import Token

from ..host.fallen import fallen
from .conftest import WAIT_S, Running

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "docs" / "grafana" / "cuelight.json"
PAGE = ROOT / "docs" / "observing.md"
SECOND = 1_000_000_000
STANDARD = {"tier": "standard"}


def parse(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Values by name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(registry: CollectorRegistry, name: str, labels: Mapping[str, str]) -> float:
    return parse(render(registry, "")[0].decode()).get((name, tuple(sorted(labels.items()))), 0.0)


def get(url: str, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=WAIT_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def tokens(*times_s: float) -> list[Token]:
    return [Token(0, 0, 0.0, None, int(at * SECOND)) for at in times_s]


def test_latencies_are_those_at_which_tokens_came() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    record = metrics.question("standard", asked_ns=10 * SECOND, prompt_tokens=7)
    record.start(10 * SECOND + SECOND // 8)
    record.take(0, tokens(10.25))
    # Two that were looked at together, and those of another answer in between.
    record.take(1, tokens(10.5))
    record.take(0, tokens(10.75, 11.75))
    record.end("length", cached_tokens=4)
    first, between = "cuelight_time_to_first_token_seconds", "cuelight_inter_token_latency_seconds"
    assert value(registry, "cuelight_request_queue_time_seconds_sum", STANDARD) == 0.125
    assert value(registry, f"{first}_sum", STANDARD) == 0.25
    assert value(registry, f"{first}_count", STANDARD) == 1
    assert value(registry, f"{between}_sum", STANDARD) == 1.5
    assert value(registry, f"{between}_count", STANDARD) == 2
    assert value(registry, "cuelight_generation_tokens_total", STANDARD) == 4
    assert value(registry, "cuelight_prompt_tokens_total", STANDARD) == 7
    assert value(registry, "cuelight_prefix_cache_hits_total", STANDARD) == 4
    assert value(registry, "cuelight_request_generation_tokens_sum", STANDARD) == 4


def test_a_question_ends_once() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    record = metrics.question("standard", asked_ns=time.monotonic_ns(), prompt_tokens=1)
    record.start(time.monotonic_ns())
    record.fail(LaneError("It died."))
    record.end("abort", 0)
    record.degrade()
    failed = {"tier": "standard", "reason": "LaneError"}
    assert value(registry, "cuelight_request_failures_total", failed) == 1
    assert value(registry, "cuelight_request_success_total", {"tier": "standard", "finished_reason": "abort"}) == 0
    assert value(registry, "cuelight_e2e_request_latency_seconds_count", STANDARD) == 1
    assert record.outcome == "LaneError"


def test_what_was_not_taken_is_a_reject_and_no_latency() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    metrics.question("standard", asked_ns=time.monotonic_ns(), prompt_tokens=1).fail(Busy("It is full.", 1.0))
    assert value(registry, "cuelight_rejects_total", {"tier": "standard", "reason": "Busy"}) == 1
    assert value(registry, "cuelight_e2e_request_latency_seconds_count", STANDARD) == 0
    assert value(registry, "cuelight_prompt_tokens_total", STANDARD) == 0


def test_delivery_is_told_by_lane_and_every_cause_from_the_start() -> None:
    with Device.open("twin", slots=64, seats=16) as device:
        snapshot = replace(fallen(device.snapshot()), lane_pids=(4711, 4712))
    registry = CollectorRegistry()
    registry.register(SchedulerCollector(lambda: snapshot, lambda: True, dict, dict, dict, "a model"))
    told = parse(render(registry, "")[0].decode())

    def shown(name: str, label: str, lane: str) -> dict[str, float]:
        """Values by a label."""
        return {
            dict(labels)[label]: count
            for (full, labels), count in told.items()
            if full == f"cuelight_{name}" and ("lane", lane) in labels
        }

    assert shown("lane_delivery_mode", "mode", "0") == {"POLL": 0, "PROBING": 0, "PUSH": 1, "FALLING": 0}
    assert shown("lane_delivery_mode", "mode", "1") == {"POLL": 0, "PROBING": 1, "PUSH": 0, "FALLING": 0}
    falls = dict.fromkeys((cause.name for cause in FallCause), 0)
    assert shown("lane_falls_total", "cause", "0") == falls | {"TIMEOUT": 2, "OVERDUE": 11}
    assert shown("lane_falls_total", "cause", "1") == falls
    for name, count in (("pushed", 123_456), ("returns", 14), ("late_completions", 3)):
        assert shown(f"lane_{name}_total", "lane", "0") == {"0": count}
        assert shown(f"lane_{name}_total", "lane", "1") == {"1": 0}


def test_questions_over_http_are_counted_by_tier(running: Running, client: openai.OpenAI) -> None:
    def ask(tier: str, **more: object) -> None:
        client.chat.completions.create(
            model="tiny",
            messages=[{"role": "user", "content": "cde"}],
            max_tokens=4,
            extra_body={"tier": tier, "ignore_eos": True, **more},
        )

    def told() -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        status, text = get(running.url, "/metrics")
        assert status == 200
        return parse(text)

    # A test before this one may have killed the lane, and what is told of it is up to a second old.
    deadline = time.monotonic() + 30.0
    while ("cuelight_seats", (("lane", "0"),)) not in (before := told()) and time.monotonic() < deadline:
        time.sleep(0.1)
    ask("vip")
    ask("best-effort")
    ask("best-effort")
    after = told()

    def more(name: str, **labels: str) -> float:
        key = (f"cuelight_{name}", tuple(sorted(labels.items())))
        return after.get(key, 0.0) - before.get(key, 0.0)

    assert more("time_to_first_token_seconds_count", tier="vip") == 1
    assert more("time_to_first_token_seconds_count", tier="best-effort") == 2
    assert more("request_queue_time_seconds_count", tier="best-effort") == 2
    assert more("generation_tokens_total", tier="vip") == more("inter_token_latency_seconds_count", tier="vip") + 1
    assert after["cuelight_healthy", ()] == 1
    assert after["cuelight_num_requests_running", (("tier", "vip"),)] == 0
    assert after["cuelight_tier_level", (("tier", "best-effort"),)] == 3
    assert after["cuelight_seats", (("lane", "0"),)] > 0


def test_every_metric_is_in_the_page_and_every_query_of_the_dashboard_is_a_metric(running: Running, llm: LLM) -> None:
    """A name in a query is one that a daemon tells, with labels that it has."""
    families = {family.name: family for family in text_string_to_metric_families(get(running.url, "/metrics")[1])}
    told = {sample.name for family in families.values() for sample in family.samples}
    told |= {f"{name}_total" for name, family in families.items() if family.type == "counter"}
    told |= {f"{name}{end}" for name, family in families.items() if family.type == "histogram" for end in ENDS}
    page = PAGE.read_text()
    ours = {name for name in families if name.startswith("cuelight")}
    assert {name for name in ours if f"`{name}" not in page} == set()
    queries = find_queries(json.loads(DASHBOARD.read_text()))
    assert len(queries) > 10
    asked = {name for query in queries for name in re.findall(r"\bcuelight_\w+", query)}
    assert asked <= told
    # What is asked for is worth telling; the rest is for whoever looks closer.
    assert {"cuelight_time_to_first_token_seconds_bucket", "cuelight_failovers_total"} <= asked


ENDS = ("_bucket", "_sum", "_count")


def find_queries(part: object) -> list[str]:
    """All PromQL in a dashboard."""
    if isinstance(part, dict):
        own = [part["expr"]] if isinstance(part.get("expr"), str) else []
        return own + [query for value in part.values() for query in find_queries(value)]
    if isinstance(part, list):
        return [query for value in part for query in find_queries(value)]
    return []


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text; version=1.0.0"])
def test_prometheus_can_choose_its_format(accept: str) -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    metrics.question("standard", time.monotonic_ns(), 1).fail(Busy("It is full.", 1.0))
    body, content_type = render(registry, accept)
    assert content_type.startswith(accept.split(";")[0] or "text/plain")
    assert body.endswith(b"# EOF\n") == bool(accept)
