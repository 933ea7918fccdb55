"""The settings file: what it may say, and the sentence for what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuelight.daemon.settings import SettingsError, load_settings

WHOLE = """
default_tier = "fast"

[server]
port = 9000
drain_s = 5.0

[limits]
n = 2

[tiers.fast]
level = 0
first_token_ms = 50.0
when_late = "degrade"
cached_answer = "We are busy; please ask again."
suggestions = 3

[tiers.slow]
level = 3
min_seats = 2
kv_floor = 8

[keys.alice]
key = "a-secret-of-alice"
tiers = ["fast", "slow"]

[keys.bob]
sha256 = "8b7df143d91c716ecfa5fc1730022f6b421b05cedee8fd52b1fc65a96030ad52"
tiers = ["slow"]
tier = "slow"
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "cuelight.toml"
    path.write_text(text)
    return path


def test_a_whole_file_is_read_and_the_command_line_goes_before_it(tmp_path: Path) -> None:
    settings = load_settings(write(tmp_path, WHOLE), host=None, port=0)
    assert (settings.server.port, settings.server.host, settings.server.drain_s) == (0, "127.0.0.1", 5.0)
    assert [(tier.level, tier.min_seats, tier.kv_floor) for tier in settings.tiers.values()] == [
        (0, 0, None),
        (3, 2, 8),
    ]
    assert settings.keys["bob"].tiers == ["slow"]
    assert settings.limits.stop == load_settings(None).limits.stop


def test_without_a_file_there_are_three_tiers_for_this_machine() -> None:
    settings = load_settings(None)
    assert [(name, tier.level, tier.suggestions) for name, tier in settings.tiers.items()] == [
        ("vip", 0, 3),
        ("standard", 1, 1),
        ("best-effort", 3, 0),
    ]
    assert settings.server.is_local
    assert not settings.keys


@pytest.mark.parametrize(
    ("said", "instead", "sentence"),
    [
        ("n = 2", "n = 0", "limits.n: input should be greater than or equal to 1; correct it"),
        ("n = 2", 'n = "2"', "limits.n: input should be a valid integer; correct it"),
        ("n = 2", "m = 2", "there is no setting limits.m; take it out, or correct its name"),
        ("level = 3", "level = 4", "tiers.slow.level: input should be less than 4; correct it"),
        ("level = 3", "level = 0", "two tiers have the same level"),
        ("level = 3", "", "tiers.slow.level: field required; correct it"),
        ('when_late = "degrade"', 'when_late = "wait"', "tiers.fast.when_late: input should be 'queue', 'refuse' or"),
        ("first_token_ms = 50.0", "", 'tiers.fast: when_late = "degrade" needs first_token_ms, the promise'),
        ('cached_answer = "We are busy; please ask again."', "", 'tiers.fast: when_late = "degrade" needs a cached_'),
        ('default_tier = "fast"', 'default_tier = "best"', "default_tier names the tier 'best', but there are fast,"),
        ('tiers = ["slow"]', 'tiers = ["fast"]', "keys.bob may not use its own default tier; give it a tier out"),
        ('tiers = ["slow"]', 'tiers = ["slow", "vip"]', "keys.bob names the tier 'vip', but there are fast, slow"),
        ('key = "a-secret-of-alice"', "", "keys.alice: give either key or sha256"),
        ('key = "a-secret-of-alice"', 'key = "short"', "keys.alice.key: string should have at least 8 characters"),
        ('sha256 = "8b', 'sha256 = "8', "keys.bob.sha256: string should match pattern"),
        ("[server]", "[server", "can't be read as settings"),
    ],
)
def test_what_can_not_be_is_told_in_a_sentence(tmp_path: Path, said: str, instead: str, sentence: str) -> None:
    assert said in WHOLE
    path = write(tmp_path, WHOLE.replace(said, instead))
    with pytest.raises(SettingsError) as told:
        load_settings(path)
    assert str(path) in str(told.value)
    assert sentence in str(told.value)


def test_other_machines_are_let_in_only_with_keys(tmp_path: Path) -> None:
    assert not load_settings(write(tmp_path, WHOLE), host="0.0.0.0").server.is_local
    for host in ("0.0.0.0", "example.org", "::"):
        with pytest.raises(SettingsError, match=r"lets other machines in, and no API key keeps anybody out; add keys"):
            load_settings(None, host=host)
    for host in ("127.0.0.2", "::1", "localhost"):
        assert load_settings(None, host=host).server.is_local


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        load_settings(tmp_path / "no.toml")
