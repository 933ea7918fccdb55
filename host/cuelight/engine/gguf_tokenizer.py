"""The byte-level BPE tokenizer that a GGUF file describes in its metadata."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from cuelight.errors import ModelFileError, UnsupportedModel

__all__ = ["check_tokenizer", "tokenizer_from_metadata"]

_CONTROL, _USER_DEFINED = 3, 4

# How text is cut before merging, by `tokenizer.ggml.pre`: GPT-2's rule, the same with single digits, Llama 3's rule,
# Qwen2's, which is that with single digits.
_GPT2 = ("gpt-2",)
_GPT2_SINGLE_DIGITS = ("smollm", "starcoder", "refact", "command-r", "codeshell")
_LLAMA3 = ("llama-bpe", "llama3", "llama-v3")
_LLAMA3_RULE = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2 = ("qwen2",)
_QWEN2_RULE = _LLAMA3_RULE.replace("{1,3}", "")


def check_tokenizer(metadata: dict[str, Any], path: Path) -> None:
    """Find out without building it whether the tokenizer is of a kind that is known here.

    Raises
    ------
    UnsupportedModel
        No byte-level BPE, or a way to cut text that is not known here.
    """
    if (kind := metadata.get("tokenizer.ggml.model")) != "gpt2":
        raise UnsupportedModel(
            f"{path} has a {kind!r} tokenizer; byte-level BPE is known here, so take the model as a Hugging Face "
            "directory with tokenizer.json."
        )
    _cutter(metadata.get("tokenizer.ggml.pre", "default"), path)


def tokenizer_from_metadata(metadata: dict[str, Any], path: Path) -> Tokenizer:
    """Build the tokenizer of the GGUF file `path` with `metadata`.

    Raises
    ------
    ModelFileError
        The vocabulary is missing or inconsistent.
    UnsupportedModel
        No byte-level BPE, or a way to cut text that is not known here.
    """
    check_tokenizer(metadata, path)
    rule = metadata.get("tokenizer.ggml.pre", "default")
    texts, merges = metadata.get("tokenizer.ggml.tokens"), metadata.get("tokenizer.ggml.merges")
    kinds = metadata.get("tokenizer.ggml.token_type") or [1] * len(texts or [])
    if not texts or merges is None or len(kinds) != len(texts) or len(set(texts)) != len(texts):
        raise ModelFileError(f"{path} has a damaged vocabulary; fetch the model again.")
    pairs = [tuple(merge.split(" ")) for merge in merges]
    try:
        model = models.BPE(
            vocab={text: number for number, text in enumerate(texts)},
            merges=pairs,
            ignore_merges=rule in _LLAMA3,
        )
    except Exception as error:
        raise ModelFileError(f"{path} has damaged merges ({error}); fetch the model again.") from error
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = _cutter(rule, path)
    if rule in _QWEN2:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.decoder = decoders.ByteLevel()
    for text, kind in zip(texts, kinds, strict=True):
        if kind in (_CONTROL, _USER_DEFINED):
            added = AddedToken(text, special=kind == _CONTROL, normalized=False)
            (tokenizer.add_special_tokens if added.special else tokenizer.add_tokens)([added])
    bos = metadata.get("tokenizer.ggml.bos_token_id")
    if metadata.get("tokenizer.ggml.add_bos_token", rule in _LLAMA3) and isinstance(bos, int) and bos < len(texts):
        tokenizer.post_processor = processors.TemplateProcessing(
            single=[texts[bos], "$A"], pair=None, special_tokens=[(texts[bos], bos)]
        )
    return tokenizer


def _cutter(rule: str, path: Path) -> pre_tokenizers.PreTokenizer:
    if rule in _GPT2:
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    if rule in _GPT2_SINGLE_DIGITS:
        digits = pre_tokenizers.Digits(individual_digits=True)
        return pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    if rule in _LLAMA3 + _QWEN2:
        split = pre_tokenizers.Split(Regex(_LLAMA3_RULE if rule in _LLAMA3 else _QWEN2_RULE), "isolated")
        return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    raise UnsupportedModel(
        f"{path} cuts text by {rule!r}, which is not known here; take the model as a Hugging Face directory."
    )
