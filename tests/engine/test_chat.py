"""Chat templates: the model's own against transformers, and what a hostile one can't do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from cuelight.engine.chat import ChatTemplate
from cuelight.errors import ChatTemplateError

CHATS = [
    [{"role": "user", "content": "Hello there"}],
    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}],
    [
        {"role": "user", "content": "A <|im_end|> in the text, and {{ braces }}"},
        {"role": "assistant", "content": "Ünïcödé ✓\n\n"},
        {"role": "user", "content": ""},
    ],
]


@pytest.mark.parametrize("messages", CHATS)
def test_prompt_is_that_of_transformers(messages: list[dict[str, str]], smollm_directory: Path) -> None:
    reference = AutoTokenizer.from_pretrained(smollm_directory)
    expected = reference.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert ChatTemplate.load(smollm_directory).render(messages) == expected
    assert expected.endswith("<|im_start|>assistant\n")


@pytest.mark.parametrize("messages", [[], [{"role": "user"}], [{"content": "x"}], [{"role": "user", "content": 3}]])
def test_incomplete_messages_are_refused(messages: list[dict[str, str]]) -> None:
    with pytest.raises(ChatTemplateError, match=r"content|role"):
        ChatTemplate("{{ messages }}", {}).render(messages)


def test_template_may_refuse_with_its_own_words() -> None:
    template = ChatTemplate("{{ raise_exception('roles must alternate') }}", {})
    with pytest.raises(ChatTemplateError, match="roles must alternate"):
        template.render(CHATS[0])


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{% for i in range(10 ** 9) %}{{ i }}{% endfor %}",
        "{{ 1 // 0 }}",
        "{{ nothing.at.all }}",
        "{{ messages[7].content }}",
        "{{ messages + 1 }}",
    ],
)
def test_hostile_or_broken_templates_end_in_a_sentence(source: str) -> None:
    with pytest.raises(ChatTemplateError, match="refuses these messages"):
        ChatTemplate(source, {}).render(CHATS[0])


def test_text_that_is_no_template_is_refused() -> None:
    with pytest.raises(ChatTemplateError, match="damaged"):
        ChatTemplate("{% if %}", {})


def test_template_is_found_where_model_directories_keep_it(tmp_path: Path) -> None:
    with pytest.raises(ChatTemplateError, match="no chat template"):
        ChatTemplate.load(tmp_path)
    settings = tmp_path / "tokenizer_config.json"
    settings.write_text(json.dumps({"bos_token": {"content": "<s>"}, "chat_template": "{{ bos_token }}one"}))
    assert ChatTemplate.load(tmp_path).render(CHATS[0]) == "<s>one"
    several = [{"name": "tool_use", "template": "no"}, {"name": "default", "template": "two{{ eos_token }}"}]
    settings.write_text(json.dumps({"eos_token": "</s>", "chat_template": several}))
    assert ChatTemplate.load(tmp_path).render(CHATS[0]) == "two</s>"
    (tmp_path / "chat_template.jinja").write_text("{{ messages | tojson }}")
    assert json.loads(ChatTemplate.load(tmp_path).render(CHATS[2])) == CHATS[2]
