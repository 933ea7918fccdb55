"""Filters as a caller gives them: one by one in place of a model's own, and refused where they can't be."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuelight.engine.defaults import Defaults, load_defaults
from cuelight.errors import InvalidArgument, ModelFileError
from cuelight.filters import MAX_BIASES, NO_FILTERS, Filters

NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"top_k": -1}, "top_k"),
        ({"top_k": 1 << 31}, "top_k"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 5e-324}, "top_p"),
        ({"top_p": 1.01}, "top_p"),
        ({"top_p": NAN}, "top_p"),
        ({"min_p": -0.1}, "min_p"),
        ({"min_p": 1.1}, "min_p"),
        ({"min_p": NAN}, "min_p"),
        ({"repetition_penalty": 0.0}, "repetition_penalty"),
        ({"repetition_penalty": INFINITY}, "repetition_penalty"),
        ({"presence_penalty": 2.1}, "presence_penalty"),
        ({"frequency_penalty": -2.1}, "frequency_penalty"),
        ({"frequency_penalty": NAN}, "frequency_penalty"),
        ({"logit_bias": ((1, 101.0),)}, "token 1 must be -100 to 100"),
        ({"logit_bias": ((1, NAN),)}, "token 1"),
        ({"logit_bias": ((-1, 1.0),)}, "token -1"),
        ({"logit_bias": ((1 << 31, 1.0),)}, "token 2147483648"),
        ({"logit_bias": ((4, 1.0), (4, 2.0))}, "a token twice"),
        ({"logit_bias": tuple((token, 1.0) for token in range(MAX_BIASES + 1))}, "300 tokens at most, not 301"),
    ],
)
def test_what_cannot_be_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message) as refusal:
        Filters(**fields).check()
    assert str(refusal.value).endswith(".")


def test_the_bounds_themselves_are_allowed() -> None:
    Filters(((0, -100.0), ((1 << 31) - 1, 100.0)), 0.01, -2.0, 2.0, (1 << 31) - 1, 1e-9, 1.0).check()
    Filters(tuple((token, 0.5) for token in range(MAX_BIASES)), 100.0, 2.0, -2.0, 0, 1.0, 0.0).check()
    # As lanes see it, in single precision.
    Filters(repetition_penalty=float(np.float32(0.01))).check()
    NO_FILTERS.check()
    assert not (NO_FILTERS.adjusts)
    assert not (NO_FILTERS.truncates)


def test_a_request_overrides_one_by_one() -> None:
    own = Filters(top_k=20, top_p=0.8, repetition_penalty=1.05)
    assert own.override() == own
    assert own.override(top_k=0, logit_bias={5: 2.0}) == Filters(((5, 2.0),), 1.05, top_p=0.8)
    with pytest.raises(InvalidArgument, match="'topp'"):
        own.override(topp=1)  # type: ignore[call-arg]


def test_a_model_s_defaults_are_what_its_file_names(tmp_path: Path) -> None:
    assert load_defaults(tmp_path) == Defaults(0.0, NO_FILTERS)
    file = tmp_path / "generation_config.json"
    for fields, expected in (
        ({"eos_token_id": 2}, Defaults(0.0, NO_FILTERS)),
        # Qwen2.5's.
        (
            {"do_sample": True, "repetition_penalty": 1.05, "temperature": 0.7, "top_p": 0.8, "top_k": 20},
            Defaults(0.7, Filters(repetition_penalty=1.05, top_p=0.8, top_k=20)),
        ),
        # Llama 3's, whose top-k is left open.
        ({"do_sample": True, "temperature": 0.6, "top_p": 0.9}, Defaults(0.6, Filters(top_p=0.9))),
        ({"do_sample": True}, Defaults(1.0, NO_FILTERS)),
        ({"temperature": 0.6, "repetition_penalty": 1.1}, Defaults(0.0, Filters(repetition_penalty=1.1))),
        ({"do_sample": True, "temperature": None, "top_k": None, "min_p": 0.05}, Defaults(1.0, Filters(min_p=0.05))),
    ):
        file.write_text(json.dumps(fields))
        assert load_defaults(tmp_path) == expected


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "[]",
        '{"top_p": 3}',
        '{"top_k": "many"}',
        '{"do_sample": true, "temperature": -1}',
        '{"do_sample": true, "temperature": NaN}',
        '{"repetition_penalty": []}',
    ],
)
def test_a_file_that_asks_for_nonsense_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "generation_config.json").write_text(text)
    with pytest.raises(ModelFileError, match=r"generation_config\.json") as refusal:
        load_defaults(tmp_path)
    assert "\n" not in str(refusal.value)
