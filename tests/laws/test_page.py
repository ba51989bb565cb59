"""The page of all laws stands as it is rendered."""

from __future__ import annotations

from pathlib import Path

import lab
from lab.laws import ALL_LAWS
from lab.laws.page import COMMAND, PAGE, laws_page

ROOT = Path(lab.__file__).parent.parent


def test_the_page_is_up_to_date() -> None:
    written = (ROOT / PAGE).read_text("utf-8")
    assert written == laws_page(), f"{PAGE} is out of date: run `{COMMAND}` in the project's folder"


def test_every_law_is_on_it_once() -> None:
    page = laws_page()
    for law in ALL_LAWS:
        assert page.count(f"| `{law.id}` |") == 1
        assert "|" not in law.sentence
