"""Streams of clients of all kinds while the lane is killed; `make soak` does it for longer, with a real model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuelight import LLM
from serving import Told
from soak import Soak

from ..host.checks import assert_at_rest
from .conftest import Running


@pytest.fixture
def restless(model: Path) -> Iterator[LLM]:
    """A model whose lane may be killed."""
    with LLM.open(model, kv_positions=4096, layers_per_stage=1, threads=1, seats=8, spare=True) as llm:
        yield llm


def test_streams_that_nobody_cuts_end_as_if_they_were_alone_though_the_lane_is_killed(restless: LLM) -> None:
    running = Running(restless)
    host, port = running.url.removeprefix("http://").split(":")
    told = Told(restless, running.daemon)
    soak = Soak(host, int(port), "tiny", told.lane_pids, told.holdings, longest_stay_s=0.2)
    outcome = asyncio.run(soak.run(streams=16, seconds=2.0, kills=1))
    running.stop()
    assert outcome.wrong == []
    assert outcome.ended
    assert outcome.cut
    assert len(outcome.back_s) == 1
    assert outcome.given_back, (outcome.before, outcome.after)
    assert_at_rest(restless.device)
