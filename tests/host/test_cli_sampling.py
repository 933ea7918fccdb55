"""From options to how tokens are chosen, and the likeliest tokens as people and programs see them."""

from __future__ import annotations

import pytest

from cuelight.cli.arguments import parse_arguments
from cuelight.cli.likeliest import likeliest_lines, likeliest_objects
from cuelight.cli.sampling import options_without_effect, read_filters
from cuelight.engine.convert import convert
from cuelight.engine.tokenizer import Tokenizer
from cuelight.errors import InvalidArgument
from cuelight.filters import FilterSettings
from cuelight.request import Token

from ..engine.tiny import write_gguf

ALL = (
    "--top-k 40 --top-p 0.9 --min-p 0.05 --repetition-penalty 1.1 --presence-penalty -0.5 --frequency-penalty 0.25 "
    "--logit-bias ab=3.5 --logit-bias 5=-100"
)
LN_HALF = -0.6931471805599453


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """Three special tokens, those of printable characters, and "ab"."""
    folder = tmp_path_factory.mktemp("model")
    write_gguf(folder / "tiny.gguf")
    convert(folder / "tiny.gguf", folder)
    return Tokenizer(folder)


def read(line: str, tokenizer: Tokenizer) -> FilterSettings:
    return read_filters(parse_arguments(["generate", *line.split()]), tokenizer)


def test_settings_are_those_of_the_command_line_and_no_others(tokenizer: Tokenizer) -> None:
    assert read("hello", tokenizer) == {}
    assert read("--top-k 0 --presence-penalty 0", tokenizer) == {"top_k": 0, "presence_penalty": 0.0}
    assert read(ALL, tokenizer) == {
        "top_k": 40,
        "top_p": 0.9,
        "min_p": 0.05,
        "repetition_penalty": 1.1,
        "presence_penalty": -0.5,
        "frequency_penalty": 0.25,
        "logit_bias": {96: 3.5, 5: -100.0},
    }


def test_a_biased_token_is_named_by_text_or_id(tokenizer: Tokenizer) -> None:
    """The last equals sign parts them; digits are an id; special tokens have texts too."""
    line = ["--logit-bias", "==1", "--logit-bias", "3=2", "--logit-bias", "<|im_end|>=-100"]
    settings = read_filters(parse_arguments(["generate", *line]), tokenizer)
    assert settings == {"logit_bias": {tokenizer.encode("=")[0]: 1.0, 3: 2.0, 2: -100.0}}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            "--logit-bias abc=1",
            """--logit-bias 'abc' is 2 tokens of the model: "ab" (96), "c" (69); bias one of them.""",
        ),
        ("--logit-bias 97=1", "--logit-bias names the token 97, which the model has not; name it by its text."),
        ("--logit-bias ab=1 --logit-bias 96=2", "--logit-bias names token 96 ('96') twice; give each token one bias."),
    ],
)
def test_what_is_no_single_token_cannot_be_biased(line: str, sentence: str, tokenizer: Tokenizer) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        read(line, tokenizer)
    assert str(refusal.value) == sentence


@pytest.mark.parametrize(
    ("line", "own", "idle"),
    [
        ("--top-p 0.9 --seed 3", 0.0, ["--top-p", "--seed"]),
        ("--top-p 0.9 --seed 3", 0.7, []),
        ("--top-k 5 --temperature 0", 0.7, ["--top-k"]),
        ("--min-p 0.1 --temperature 0.5", 0.0, []),
        ("--repetition-penalty 1.2 --logit-bias ab=1", 0.0, []),
    ],
)
def test_options_that_change_nothing_are_known(line: str, own: float, idle: list[str]) -> None:
    assert options_without_effect(parse_arguments(["generate", *line.split()]), own) == idle


def test_the_likeliest_stand_beside_what_was_chosen(tokenizer: Tokenizer) -> None:
    """In lines no wider than there is room, in quotes so that spaces and special tokens show."""
    alternatives = ((96, LN_HALF), (2, 2 * LN_HALF), (69, 3 * LN_HALF), (70, -50.0))
    tokens = [Token(7, 96, LN_HALF, None, 0, alternatives), Token(8, 2, 0.0, None, 0, alternatives[:1])]
    assert likeliest_lines(tokens, tokenizer, 60) == [
        "token                 likeliest",
        '"ab" 50.0%            "ab" 50.0%   "<|im_end|>" 25.0%',
        '                      "c" 12.5%   "d" <0.1%',
        '"<|im_end|>" 100.0%   "ab" 50.0%',
    ]
    assert likeliest_objects(tokens, tokenizer)[1] == [{"token": 96, "text": "ab", "logprob": LN_HALF}]
