"""Three validators of three makers come to the same verdicts: on every vector, and on what came of changing them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import pytest

from lab.contract.vectors import load_vectors
from lab.protocol.contract import default_contract_folder
from tests.contract.keywords import documents, keyword, without
from tests.contract.mutations import mutations
from tests.contract.test_keywords import STRICT_ONLY
from tests.contract.validators import (
    AJV,
    REVISIONS,
    Case,
    ajv,
    by_ajv,
    by_contract,
    by_jsonschema,
    contract,
    schemas,
)

Judge = Callable[[str, Sequence[Case]], list[bool]]
OTHERS = [pytest.param(by_jsonschema, id="jsonschema"), pytest.param(by_ajv, id="ajv")]


MUTATIONS = [pytest.param(125, id="some"), pytest.param(2500, id="many", marks=pytest.mark.slow)]
"""In each of the four revisions."""


@cache
def vectors(revision: str) -> tuple[list[str], list[Case], list[bool]]:
    """Labels, cases and due verdicts of the vectors that judge one schema."""
    labels, cases, due = [], [], []
    for file in load_vectors(default_contract_folder()).files:
        # Bodies are the same in every revision.
        counts = revision == REVISIONS[-1] if file.is_body else file.schema in contract(revision).types
        if not counts:
            continue
        for vector in file.vectors:
            if vector.counts_in(revision):
                labels.append(f"{file.name}: {vector.name}")
                cases.append((file.schema, vector.message))
                due.append(vector.schema_holds)
    return labels, cases, due


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("judge", [pytest.param(by_contract, id="jsonschema-rs"), *OTHERS])
def test_every_vector_has_its_verdict(judge: Judge, revision: str) -> None:
    labels, cases, due = vectors(revision)
    seen = judge(revision, cases)
    assert [label for label, one, other in zip(labels, seen, due, strict=True) if one is not other] == []


@pytest.mark.parametrize("judge", OTHERS)
def test_the_validators_agree_across_types(judge: Judge) -> None:
    cases: list[Case] = []
    for file in load_vectors(default_contract_folder()).files:
        for vector in file.vectors if file.is_cross_type else ():
            named = vector.message.get("type") if isinstance(vector.message, dict) else None
            cases.append(("envelope", vector.message))
            if isinstance(named, str) and named in contract("2.3").types:
                cases.append((named, vector.message))
    assert len(cases) > 100
    assert judge("2.3", cases) == by_contract("2.3", cases)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("count", MUTATIONS)
@pytest.mark.parametrize("judge", OTHERS)
def test_the_validators_agree_on_mutated_vectors(judge: Judge, count: int, revision: str) -> None:
    cases = list(mutations(count, 7, contract(revision)))
    ours = by_contract(revision, cases)
    odd = [case for case, one, other in zip(cases, ours, judge(revision, cases), strict=True) if one is not other]
    assert odd == []
    # Mutations that never hold, or always, would show nothing.
    assert 0.05 < sum(ours) / len(ours) < 0.9


def test_a_mutation_is_the_same_for_the_same_seed() -> None:
    assert list(mutations(50, 7, contract("2.3"))) == list(mutations(50, 7, contract("2.3")))
    assert list(mutations(50, 7, contract("2.3"))) != list(mutations(50, 8, contract("2.3")))


def test_strict_mode_wants_the_keywords_that_judge_nothing() -> None:
    jobs = [
        {"schemas": list(without(documents("2.3"), [keyword(text)]).values()), "cases": []}
        for text in sorted(STRICT_ONLY)
    ]
    answers = ajv([*jobs, {"schemas": list(schemas("2.3").values()), "cases": []}])
    assert [sorted(answer) for answer in answers] == [["refused"]] * len(STRICT_ONLY) + [["verdicts"]]


def test_the_lock_pins_ajv_and_names_no_registry() -> None:
    lock = (AJV / "package-lock.json").read_text()
    assert "resolved" not in lock
    assert '"node_modules/ajv"' in lock
