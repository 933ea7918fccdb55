"""What docs/serving.md shows is what the daemon does."""

import re
from pathlib import Path

from cuelight.daemon.settings import load_settings

PAGE = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()


def test_the_settings_shown_are_those_there_are_without_any(tmp_path: Path) -> None:
    [shown] = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    path = tmp_path / "cuelight.toml"
    path.write_text(shown)
    settings = load_settings(path)
    assert list(settings.keys) == ["alice", "bob"]
    assert settings.model_copy(update={"keys": {}}) == load_settings(None)
    # What is left out by default is shown behind a sign.
    path.write_text(re.sub(r"^# (\w+ = )", r"\1", shown, flags=re.MULTILINE))
    assert load_settings(path).tiers["vip"].cached_answer
