from __future__ import annotations

import pytest

from lab.durations import LONGEST, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0s", 0.0), ("20ms", 0.02), ("3s", 3.0), ("0.5s", 0.5), ("1m", 60.0), ("1.5h", 5400.0), ("24h", LONGEST)],
)
def test_a_duration_is_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "3", "s", "3 s", "-1s", "1e3s", "1m30s", "3S", "3sec", ".5s", "3s\n", "٣s"])
def test_another_text_is_refused_with_the_valid_form(text: str) -> None:
    with pytest.raises(ValueError, match=r"a number and a unit, such as `200ms`, `3s` or `1m`"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["25h", "999999999h"])
def test_more_than_a_day_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="`24h` is the most"):
        parse_duration(text)
