"""What a caller orders, and what a session must have announced for it."""

from __future__ import annotations

import pytest

from lab.errors import ExitStatus
from lab.gateway.jobs import CallRefused, Order, refuse_unsupported

JOB = "0b0b0b0b-0000-4000-8000-00000000000b"
ASSIGN, CHAT, LONG, OPTIONS = "job.assign", "job.chat", "job.inline.16k", "job.options"


@pytest.mark.req("CP-001", "CP-004", "CP-006", "CP-007", "CP-030")
@pytest.mark.parametrize(
    ("order", "announced", "missing"),
    [
        (Order(JOB, "fix"), (ASSIGN,), None),
        (Order(JOB, "fix"), (CHAT,), None),
        (Order(JOB, "fix"), (), ASSIGN),
        (Order(JOB, "fix"), (LONG, OPTIONS), ASSIGN),
        (Order(JOB, "chat"), (CHAT,), None),
        (Order(JOB, "chat"), (ASSIGN,), CHAT),
        (Order(JOB, "chat", ("a" * 4096,)), (CHAT,), None),
        (Order(JOB, "chat", ("a" * 4097,)), (CHAT,), LONG),
        (Order(JOB, "chat", ("a", "b" * 4097)), (CHAT,), LONG),
        (Order(JOB, "chat", ("a" * 4097,)), (LONG,), CHAT),
        (Order(JOB, "chat", ("a" * 4097,)), (CHAT, LONG), None),
        (Order(JOB, "fix", options={"n": 1}), (ASSIGN,), OPTIONS),
        (Order(JOB, "fix", options={"n": 1}), (ASSIGN, OPTIONS), None),
    ],
)
def test_an_order_needs_its_capabilities(order: Order, announced: tuple[str, ...], missing: str | None) -> None:
    if missing is None:
        refuse_unsupported(order, announced)
        return
    with pytest.raises(CallRefused, match=f"did not announce {missing}$") as caught:
        refuse_unsupported(order, announced)
    # CP-002
    assert caught.value.code == "AGENT_UNSUPPORTED"
    assert caught.value.exit_status is ExitStatus.BROKEN


@pytest.mark.req("CP-016")
def test_a_chat_has_no_incident_even_if_one_is_ordered() -> None:
    assert "incidentRef" not in Order(JOB, "chat", ("a",), incident="inc-1").payload()


def test_a_payload_has_what_was_ordered_and_nothing_else() -> None:
    assert Order(JOB, "fix").payload() == {"jobId": JOB, "kind": "fix", "inputs": []}
    full = Order(JOB, "implement", ("a", "b"), {"n": 1}, "large", "inc-1", "repo-1")
    assert full.payload() == {
        "jobId": JOB,
        "kind": "implement",
        "inputs": [{"inline": "a", "transient": True}, {"inline": "b", "transient": True}],
        "incidentRef": {"id": "inc-1"},
        "repoRef": {"repoId": "repo-1"},
        "llm": {"alias": "large"},
        "options": {"n": 1},
    }
