"""`lab explain` knows every law, requirement and code."""

from __future__ import annotations

import json

import pytest

from lab.cli import run_command_line
from lab.commands import explain
from lab.contract.requirements import default_requirements_folder, load_requirements
from lab.laws import ALL_LAWS, Law
from lab.protocol.contract import Contract, default_contract_folder
from lab.protocol.errors import ERROR_CODES, CloseCodes

REQUIREMENTS = load_requirements(default_requirements_folder())


@pytest.mark.parametrize("law", ALL_LAWS, ids=lambda law: str(law.id))
def test_every_law(law: Law, capsys: pytest.CaptureFixture[str]) -> None:
    """Its promise, its party, and each of its requirements with its rule."""
    assert run_command_line(["explain", law.id]) == 0
    text = capsys.readouterr().out
    assert law.sentence in text
    assert f"party: {law.party}" in text
    for name in law.requirements:
        assert f"  {name}  {REQUIREMENTS[name].rule}" in text


def test_every_requirement() -> None:
    """By its id, whatever its case."""
    for name, requirement in REQUIREMENTS.items():
        for spelled in (name, name.lower()):
            facts = explain._facts(spelled, REQUIREMENTS)
            assert facts is not None
            assert (facts["requirement"], facts["rule"], facts["basis"]) == (name, requirement.rule, requirement.basis)


def test_a_requirement_names_its_laws(capsys: pytest.CaptureFixture[str]) -> None:
    """The way back from a law's list."""
    assert run_command_line(["explain", "CHAT-033", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [law for law in facts["laws"] if law.startswith("stream-complete ")]


def test_every_code_and_close_code() -> None:
    """A number and its name give the same facts."""
    closes = CloseCodes(Contract.load(default_contract_folder()).error_codes)
    for name, code in ERROR_CODES.items():
        facts = explain._facts(name, REQUIREMENTS)
        assert facts is not None
        assert (facts["code"], facts["meaning"]) == (name, code.doc)
        number = closes.of(name)
        if number is not None:
            assert explain._facts(str(number), REQUIREMENTS) == facts


def test_the_three_ways_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    """As the README shows them."""
    for word, told in [("stream-complete", "promise:"), ("SQ-020", "rule:"), ("4420", "close code: 4420")]:
        assert run_command_line(["explain", word]) == 0
        assert told in capsys.readouterr().out


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("stream-compleet", "stream-complete"),
        ("sq-0200", "SQ-020"),
        ("frame_too_larg", "frame_too_large"),
        ("4999", None),
        ("xyzzy", None),
        ("٤٤٢٠", None),
        ("99999999999999999999", None),
    ],
)
def test_what_nobody_knows(word: str, near: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 2, with the nearest."""
    assert run_command_line(["explain", word]) == 2
    told = capsys.readouterr().err
    assert f"`{word}` is no law, requirement, wire code or close code." in told
    assert ("Did you mean" in told) is (near is not None)
    assert near is None or f"`{near}`?" in told
