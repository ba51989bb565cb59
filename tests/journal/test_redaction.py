"""What of a payload may be written down."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lab
from lab.journal.redaction import LONGEST_LIST, UNKNOWN, digest_of, hide, redact_payload

CANARY = "CANARY-7f3a"
JOB = "c0000000-0000-4000-8000-000000000001"
CONTRACT = Path(lab.__file__).parent.parent / "contract" / "la-protocol-v2"
TYPES = sorted(json.loads((CONTRACT / "index.json").read_text("utf-8"))["types"])


def digest(kind: str, text: str) -> dict[str, Any]:
    return {"kind": kind, "bytes": len(text.encode()), "sha256": hashlib.sha256(text.encode()).hexdigest()}


@pytest.mark.req("SEC-012")
def test_identifiers_stay_and_content_goes() -> None:
    payload = {
        "jobId": JOB,
        "kind": "chat",
        "inputs": [{"inline": "why?", "transient": True}],
        "llm": {"alias": "model-1"},
        "options": {"conversationId": JOB, "tone": "kind"},
    }
    assert redact_payload("job.assign", payload) == {
        "jobId": JOB,
        "kind": "chat",
        "inputs": ({"inline": digest("inline", "why?"), "transient": True},),
        "llm": {"alias": "model-1"},
        "options": {"conversationId": JOB, UNKNOWN: digest("unlisted", '{"tone":"kind"}')},
    }


@pytest.mark.req("SEC-011", "SEC-012")
@pytest.mark.parametrize(
    ("type_", "member", "value"),
    [
        ("approval.decision", "token", "vhapr1.a.b"),
        ("scan.upload", "signedPutUrl", "https://a"),
        ("llm.key", "key", "k"),
        ("content.request", "ref", JOB),
        ("content.response", "data", "aGk="),
        ("webhook.forward", "bodyB64", "aGk="),
        ("error", "detail", "x"),
        ("job.result", "branch", "x"),
        ("job.result", "prUrl", "https://a"),
    ],
)
def test_secrets_and_content_are_digests(type_: str, member: str, value: str) -> None:
    redacted = redact_payload(type_, {member: value})[member]
    assert set(redacted) == {"kind", "bytes", "sha256"}
    assert redacted["sha256"] == hashlib.sha256(value.encode()).hexdigest()
    assert redacted["bytes"] == len(value)


@pytest.mark.parametrize(
    ("type_", "payload"),
    [
        ("job.event", {"jobId": "no uuid"}),
        ("job.event", {"jobId": [JOB]}),
        ("job.event", {"state": "Has Blanks"}),
        ("job.event", {"iteration": "3"}),
        ("job.event", {"iteration": True}),
        ("job.event", {"iteration": 10**30}),
        ("ready", {"resumed": "true"}),
        ("ready", {"limits": "none"}),
        ("register", {"capabilities": "job.chat"}),
        ("register", {"capabilities": ["job.chat"] * (LONGEST_LIST + 1)}),
    ],
)
def test_what_is_not_of_its_form_is_a_digest(type_: str, payload: dict[str, Any]) -> None:
    ((name, value),) = payload.items()
    redacted = redact_payload(type_, payload)[name]
    assert set(redacted) == {"kind", "bytes", "sha256"}
    assert redacted == digest_of(redacted["kind"], value)


def test_no_payload() -> None:
    assert redact_payload("heartbeat", {}) == {}
    assert redact_payload(None, None) == {}
    assert redact_payload("nobody", {"a": 1}) == {UNKNOWN: digest("payload", '{"a":1}')}
    assert redact_payload("heartbeat", [1]) == {UNKNOWN: digest("payload", "[1]")}


def _keys(schema: dict[str, Any]) -> set[str]:
    return set(schema["properties"]["payload"].get("properties", {}))


@pytest.mark.parametrize("type_", TYPES)
def test_every_member_of_the_contract_is_known(type_: str) -> None:
    """A member that only some schema knows would hide among the unlisted ones."""
    schema = json.loads((CONTRACT / f"{type_}.schema.json").read_text("utf-8"))
    for name in _keys(schema):
        assert UNKNOWN not in redact_payload(type_, {name: "x"}), name


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from([JOB, "running", "ws-1"])
)
MEMBERS = [
    "jobId",
    "state",
    "inputs",
    "inline",
    "ref",
    "options",
    "limits",
    "resume",
    "sessionId",
    "capabilities",
    "llm",
    "alias",
    "workspaces",
    "workspaceId",
    "code",
    "detail",
    "data",
    "kind",
    "repoRef",
    "branch",
    "clock",
    "utc",
]
NAMES = st.text(max_size=6) | st.sampled_from(MEMBERS)


def _with_canary(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.lists(inner, max_size=3)
        | st.dictionaries(NAMES, inner, max_size=4)
        | st.builds(lambda name, value: {name + CANARY: value}, NAMES, inner)
    )


PLANTED = st.recursive(
    SCALARS | st.builds(lambda a, b: a + CANARY + b, st.text(max_size=3), st.text(max_size=3)),
    _with_canary,
    max_leaves=12,
)


@settings(max_examples=500)
@given(st.sampled_from([*TYPES, "nobody"]), st.dictionaries(NAMES, PLANTED, max_size=6) | PLANTED)
@pytest.mark.req("SEC-012")
def test_a_canary_anywhere_never_comes_out(type_: str, payload: Any) -> None:
    assert CANARY not in json.dumps(redact_payload(type_, payload))


def test_hiding_what_has_the_form_of_an_identifier() -> None:
    hidden = hide({"a": ["canary-x", "other", 3], "b": ("canary-x",)}, lambda text: "canary" in text)
    assert hidden == {"a": (digest("hidden", "canary-x"), "other", 3), "b": (digest("hidden", "canary-x"),)}
