"""The programs in docs/driver.md run as they stand."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "driver.md"
PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (0, r"1 request on the device\n"),
        (1, r"(3 42 length\n){2}\d+ events\n"),
        (
            2,
            r"Cost\(budget=400, .*\nThe request needs 32 .* leaves 40 to others; .*\nTier\(min_seats=8, .*\n",
        ),
        (3, r"The sea is[^.]+\..*\n"),
        (4, r" (yes|no)\n\{'city': '[^']*', 'million_people': -?\d+\}\n"),
        (5, r"(.* \d+ \d+ \d+\n)*"),
    ],
)
def test_programs_run_as_they_stand(program: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(PROGRAMS[program], f"{PAGE.name}, program {program}", "exec"), {})
    assert re.fullmatch(said, capsys.readouterr().out)


def test_every_program_is_tried() -> None:
    assert len(PROGRAMS) == 6
