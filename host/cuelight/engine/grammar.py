"""Which tokens may come next so that an answer is of a given form: JSON, JSON of a schema, or a grammar's text."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, NamedTuple

import llguidance
import numpy as np
from numpy.typing import NDArray

from cuelight.engine.spelling import Spelling
from cuelight.engine.tokenizer import Tokenizer
from cuelight.errors import GrammarError

__all__ = ["MAX_DEPTH", "MAX_PARTS", "Grammar", "GrammarText", "Grammars", "Guide", "embedded_schema"]

MAX_PARTS = 5000
"""Objects and arrays that a schema may consist of."""

MAX_DEPTH = 100
"""Objects and arrays in each other in a schema."""

_SPACES = r" |\n[ \t]{0,20}"
"""White space in JSON: a model that may have as much as it likes may write nothing else."""

_KEPT = 32
_STACK_BYTES = 256 << 20
_COMPILE_S = 30.0
_REASON_LENGTH = 200


class GrammarText(NamedTuple):
    """What a grammar is made of: a JSON schema that is held to strictly or as far as that goes, or a text in Lark."""

    kind: Literal["strict schema", "lenient schema", "lark"]
    text: str

    def write(self) -> str:
        """The grammar as llguidance takes it."""
        if self.kind == "lark":
            return llguidance.LLMatcher.grammar_from_lark(self.text)
        overrides = _settings(strict=self.kind == "strict schema")
        return llguidance.LLMatcher.grammar_from_json_schema(self.text, overrides=overrides)


class Grammar:
    """A form that answers can have; made by `Grammars`.

    Attributes
    ----------
    text : GrammarText
        What it was made of.
    first_mask : array of uint32
        What an answer may begin with, as `Guide.mask` has it.
    """

    def __init__(self, text: GrammarText, matcher: llguidance.LLMatcher, vocabulary: int) -> None:
        self.text = text
        self._matcher = matcher
        self._vocabulary = vocabulary
        self.first_mask = self.guide().mask()

    def guide(self) -> Guide:
        """Follow one answer from its beginning."""
        return Guide(self._matcher.deep_copy(), self._vocabulary)


class Guide:
    """Follows one answer through its grammar, token by token; not for several threads at once."""

    def __init__(self, matcher: llguidance.LLMatcher, vocabulary: int) -> None:
        self._matcher = matcher
        self._vocabulary = vocabulary

    def mask(self) -> NDArray[np.uint32]:
        """What may come next: token t is bit t mod 32 of word t / 32; end of text where the answer may be over.

        Special tokens never may, so none gets into a text. Shape (vocabulary / 32 rounded up,).

        Raises
        ------
        GrammarError
            Nothing may, or it is too hard to find out.
        """
        allowed = np.zeros(-(-self._vocabulary // 32), np.uint32)
        self._matcher.unsafe_compute_mask_ptr(allowed.ctypes.data, allowed.nbytes)
        self._check()
        if not allowed.any():
            raise GrammarError("No token of the model can go on as the format demands; ask for another format.")
        return allowed

    def accept(self, token: int) -> None:
        """Take the token that came next.

        Raises
        ------
        GrammarError
            It was not allowed.
        """
        self._matcher.consume_token(token)
        self._check()

    def _check(self) -> None:
        if self._matcher.is_error():
            raise GrammarError(
                f"The answer can't be kept to its format ({_short(self._matcher.get_error())}); ask for a simpler one."
            )


class Grammars:
    """Makes grammars for one model; safe from several threads. The latest are kept, so that none is made twice.

    Parameters
    ----------
    tokenizer
        The model's tokenizer.
    vocabulary
        Tokens of the model, which may be more than its tokenizer has.
    eos_ids
        Tokens that are end of text.
    """

    def __init__(self, tokenizer: Tokenizer, vocabulary: int, eos_ids: Collection[int]) -> None:
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._eos_ids = sorted(eos_ids)
        self._lock = threading.Lock()
        self._trie: llguidance.LLTokenizer | None = None
        self._kept: OrderedDict[GrammarText, Grammar] = OrderedDict()

    def json_object(self) -> Grammar:
        """Any JSON object.

        Raises
        ------
        GrammarError
            The model has no end of text.
        """
        return self.json_schema({"type": "object"})

    def json_schema(self, schema: Mapping[str, Any] | bool, *, strict: bool = True) -> Grammar:
        """JSON that is valid under a schema.

        Parameters
        ----------
        schema
            A JSON schema.
        strict
            Refuse what can't be held to, instead of leaving it out.

        Raises
        ------
        GrammarError
            The schema is none, contradicts itself, is too large, or has parts that can't be held to.
        """
        _check_size(schema)
        return self.make(GrammarText("strict schema" if strict else "lenient schema", json.dumps(schema)))

    def lark(self, source: str) -> Grammar:
        """Text of a grammar in the Lark notation of llguidance.

        There ``<[7]>`` is token 7, which has to be an added one, and ``%json`` goes before an `embedded_schema`.

        Raises
        ------
        GrammarError
            The grammar is none.
        """
        return self.make(GrammarText("lark", source))

    def make(self, text: GrammarText) -> Grammar:
        """What a text says that another process has found right; how long a schema is was seen to there.

        Raises
        ------
        GrammarError
            It can't be used.
        """
        with self._lock:
            if text in self._kept:
                self._kept.move_to_end(text)
                return self._kept[text]
            if self._trie is None:
                self._trie = self._build_trie()
            trie = self._trie
        # Errors go to users: without the state of the parser.
        limits = llguidance.LLParserLimits(verbose_errors=False)
        matcher = _on_large_stack(lambda: llguidance.LLMatcher(trie, text.write(), log_level=0, limits=limits))
        if matcher.is_error():
            what = "grammar" if text.kind == "lark" else "JSON schema"
            raise GrammarError(f"The {what} can't be used ({_short(matcher.get_error())}); correct or simplify it.")
        grammar = Grammar(text, matcher, self._vocabulary)
        with self._lock:
            self._kept[text] = grammar
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return grammar

    def _build_trie(self) -> llguidance.LLTokenizer:
        if not self._eos_ids:
            raise GrammarError("The model has no end of text, so no answer of a given format could end; ask for none.")
        vocabulary = _Vocabulary(self._tokenizer, self._vocabulary, self._eos_ids[0])
        wrapper = llguidance.TokenizerWrapper(vocabulary)
        trie = llguidance.LLTokenizer(wrapper, n_vocab=self._vocabulary, eos_token=self._eos_ids)
        vocabulary.cut_greedily = trie.greedy_tokenize
        return trie


def embedded_schema(schema: Mapping[str, Any], *, strict: bool) -> str:
    """A JSON schema as it is written into a Lark grammar; parameters and errors as in `Grammars.json_schema`."""
    _check_size(schema)
    return json.dumps({"x-guidance": _settings(strict), **schema})


def _settings(strict: bool) -> Any:
    return {"whitespace_pattern": _SPACES, "lenient": not strict, "coerce_one_of": not strict}


class _Vocabulary:
    """A vocabulary as llguidance wants it."""

    bos_token_id = None

    def __init__(self, tokenizer: Tokenizer, size: int, eos: int) -> None:
        spelling: Spelling = tokenizer.spelling
        self._encode = tokenizer.encode_plain
        self.cut_greedily: Callable[[str], list[int]] = self._encode
        self.eos_token_id = eos
        self.tokens = [spelling.written(token) for token in range(size)]
        # Added tokens have a meaning of their own even where they are shown as text.
        self.special_token_ids = sorted(token for token in spelling.added if token < size)

    def __call__(self, text: str) -> list[int]:
        """Cut what a grammar demands as the model is used to, if that says the same: normalizers change texts."""
        tokens = self._encode(text)
        return tokens if b"".join(map(self.tokens.__getitem__, tokens)) == text.encode() else self.cut_greedily(text)


def _check_size(schema: object) -> None:
    left, parts = [(schema, 1)], 0
    while left:
        part, depth = left.pop()
        if isinstance(part, Mapping | list):
            parts += 1
            left += ((inner, depth + 1) for inner in (part.values() if isinstance(part, Mapping) else part))
        if parts > MAX_PARTS or depth > MAX_DEPTH:
            raise GrammarError(
                f"The JSON schema has more than {MAX_PARTS} objects and arrays, or {MAX_DEPTH} in each other; "
                "simplify it."
            )


def _on_large_stack(call: Callable[[], llguidance.LLMatcher]) -> llguidance.LLMatcher:
    """Call in a thread of its own: llguidance recurses along references, and a full stack would end the process."""
    made: list[llguidance.LLMatcher] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            made.append(call())
        # A panic of llguidance is no Exception.
        except BaseException as error:
            errors.append(error)

    with _STACK:
        before = threading.stack_size(_STACK_BYTES)
        try:
            thread = threading.Thread(target=run, name="cuelight-grammar", daemon=True)
            thread.start()
        finally:
            threading.stack_size(before)
    thread.join(_COMPILE_S)
    if thread.is_alive():
        raise GrammarError(f"The JSON schema takes more than {_COMPILE_S:g} s to compile; simplify it.")
    if errors:
        raise GrammarError(f"The JSON schema can't be used ({_short(str(errors[0]))}); correct or simplify it.")
    return made[0]


_STACK = threading.Lock()


def _short(reason: str) -> str:
    return " ".join(reason.split())[:_REASON_LENGTH].rstrip(".")
