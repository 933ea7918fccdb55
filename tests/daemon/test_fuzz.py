"""Questions made from the OpenAPI description, right ones and wrong ones: nothing that a client sends is our fault.

`make fuzz` makes many more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from cuelight import LLM

from ..host.checks import assert_at_rest
from .conftest import WAIT_S, Running

FEW = 4
EXAMPLES = int(os.environ.get("FUZZ", FEW))
SHORT = 4
LIMITS = {"new_tokens": SHORT, "receive_s": 5.0}
CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance]
LENGTHS = ("max_tokens", "max_completion_tokens")


@pytest.fixture(scope="module")
def fuzzed(llm: LLM) -> Iterator[Running]:
    running = Running(llm, limits=LIMITS)
    yield running
    running.stop()
    assert_at_rest(llm.device)


@pytest.fixture(scope="module")
def api(fuzzed: Running) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"{fuzzed.url}/openapi.json")


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["right", "wrong"])
def test_every_answer_is_as_described_and_none_says_that_the_service_failed(
    api: schemathesis.BaseSchema, mode: GenerationMode
) -> None:
    for found in api.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        if mode is GenerationMode.NEGATIVE and operation.method == "get":
            continue  # There is nothing to get wrong.

        @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
        @hypothesis.settings(
            max_examples=EXAMPLES, deadline=None, derandomize=EXAMPLES == FEW, suppress_health_check=list(HealthCheck)
        )
        def ask(case: schemathesis.Case[Any]) -> None:
            shorten(case)
            case.validate_response(case.call(timeout=WAIT_S), checks=CHECKS)

        ask()


def shorten(case: schemathesis.Case[Any]) -> None:
    """Most questions would ask for a model that is not here, or for more than there is time for."""
    if isinstance(case.body, dict):
        if isinstance(case.body.get("model"), str):
            case.body["model"] = "tiny"
        for name in LENGTHS:
            if isinstance(length := case.body.get(name), int):
                case.body[name] = min(length, SHORT)
