"""Each keyword of each schema is needed: without it, some vector has another verdict."""

from __future__ import annotations

import pytest

from lab.contract.vectors import ENVELOPE
from tests.contract.keywords import SHARED, Keyword, documents, is_needed, keyword, keywords

REVISIONS = ("2.3", "2.2", "2.1", "2.0")

STRICT_ONLY = {
    "defs/$defs/memberName type",
    "ack/properties/payload/then properties",
    "job.assign/properties/payload/allOf/1/else properties",
    "policy.decision/properties/payload/then properties",
}
"""Keywords without meaning for any message, which a strict validator wants beside others; see the tests with Ajv."""

PAYLOAD = "/properties/payload"
REPEATED = {
    "defs/$defs/base64 type": ["content.response/properties/payload/properties/data type"],
    "content.response/properties/payload/properties/data type": ["defs/$defs/base64 type"],
    "webhook.forward/properties/payload/properties/bodyB64 type": ["defs/$defs/base64 type"],
    f"content.response/if{PAYLOAD} type": [f"content.response{PAYLOAD} type", f"envelope{PAYLOAD} type"],
    "content.response/else/properties/chunk type": ["defs/$defs/chunk type"],
    "job.assign/properties/payload/allOf/0/else/properties/inputs type": [
        "job.assign/properties/payload/properties/inputs type"
    ],
}
"""What another keyword says again, because strict validators want it there: it is needed once the others are gone."""

IDLE_BEFORE_2_1 = {"webhook.forward dependentRequired": ["webhook.forward/properties/chunk $ref"]}
"""The first revision has no chunk in a webhook, so what a chunk needs is said for later ones alone."""


def repeated_by(each: Keyword, revision: str) -> list[Keyword]:
    """The keywords that say the same of the same value."""
    if each.keyword == "type" and each.pointer in ("", PAYLOAD) and each.schema in _frame_types(revision):
        return [keyword(f"{ENVELOPE}{each.pointer} type")]
    others = {**REPEATED, **(IDLE_BEFORE_2_1 if revision == "2.0" else {})}
    return [keyword(text) for text in others.get(str(each), [])]


def _frame_types(revision: str) -> list[str]:
    return [name for name in documents(revision) if name not in SHARED and not name.endswith(".body")]


def judged(revision: str) -> list[Keyword]:
    """All keywords of a revision, or of the schemas that differ from the revision after it."""
    place = REVISIONS.index(revision)
    newer = documents(REVISIONS[place - 1]) if place else {}
    names = [name for name, schema in documents(revision).items() if schema != newer.get(name)]
    return [each for name in names for each in keywords(name, revision)]


@pytest.mark.req("CT-010", "CT-057")
@pytest.mark.parametrize("revision", REVISIONS)
def test_without_any_one_keyword_a_vector_flips(revision: str) -> None:
    idle = [
        str(each)
        for each in judged(revision)
        if str(each) not in STRICT_ONLY and not is_needed(each, revision, repeated_by(each, revision))
    ]
    assert idle == []


def test_the_exceptions_are_those_that_need_to_be() -> None:
    alone = {str(each) for each in judged("2.3") if not is_needed(each, "2.3")}
    assert alone == STRICT_ONLY | {str(each) for each in judged("2.3") if repeated_by(each, "2.3")}


def test_the_first_revision_has_one_exception_more() -> None:
    for text in IDLE_BEFORE_2_1:
        assert not is_needed(keyword(text), "2.0")
        assert is_needed(keyword(text), "2.1")


def test_how_much_is_judged() -> None:
    assert len(judged("2.3")) == 726
