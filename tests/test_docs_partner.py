"""docs/partner.md names all that a person can order of the model, its scripts and the store."""

from __future__ import annotations

import re

import pytest

from lab.commands.serve_partner import partner
from lab.partner.model.control_routes import CHANGES, VIEWS
from lab.partner.model.script import DELAYS
from lab.partner.model.script_reading import _STEPS, _WORDS
from lab.store.misbehaviour import Wrong
from tests.command_line import ROOT

TEXT = (ROOT / "docs" / "partner.md").read_text("utf-8")
ROWS = [line for line in TEXT.splitlines() if line.startswith("| ")]


def first_cells(heading: str) -> str:
    """The first column of the table below a line that begins with `heading`."""
    after = TEXT[TEXT.index(f"\n| {heading}") :].strip()
    return "\n".join(line.split(" | ")[0] for line in after.partition("\n\n")[0].splitlines())


def test_every_control_with_its_method() -> None:
    told = set(re.findall(r"`((?:GET|POST) /[a-z/]+)`", first_cells("method and path")))
    assert told == {f"POST /{name}" for name in CHANGES} | {f"GET /{name}" for name in VIEWS}


def test_every_option_of_the_model_alone() -> None:
    told = set(re.findall(r"`--([a-z]+)", first_cells("option")))
    assert told | {"port"} == {option.name for option in partner.params}


@pytest.mark.parametrize("word", [*_WORDS, *_STEPS, *DELAYS])
def test_every_word_of_a_script(word: str) -> None:
    assert any(re.search(rf"`[^`]*\b{word}\b", row) for row in ROWS)


def test_every_misdeed_of_a_store() -> None:
    assert set(re.findall(r"`([a-z-]+)`", first_cells("`do`"))) - {"do"} == {str(wrong) for wrong in Wrong}
