from typing import Any

import pytest

from lab.errors import Agent2Error
from lab.localagent.outcome import CANCELLED, Outcome, failed, of_refusal, of_result, of_terminal_event
from tests.localagent.doubles import JOB

METADATA = {
    "prUrl": "https://git.example/pr/1",
    "branch": "fix/1",
    "commitSha": "a" * 40,
    "filesChangedCount": 3,
    "diffSha256": "b" * 64,
    "tests": {"passed": 1, "failed": 0, "skipped": 2},
}


@pytest.mark.req("LA-025", "TY-016")
def test_a_success_passes_its_metadata_on() -> None:
    outcome = of_result({"outcome": "pr_opened", **METADATA, "answer": "canary"}, chat=False, most_files=9)
    assert outcome.payload(JOB) == {"jobId": JOB, "outcome": "pr_opened", **METADATA}


@pytest.mark.req("TY-018")
@pytest.mark.parametrize(
    "wrong",
    [
        {"prUrl": "http://git.example"},
        {"prUrl": "https://" + "x" * 512},
        {"branch": "two words"},
        {"commitSha": "A" * 40},
        {"filesChangedCount": -1},
        {"diffSha256": "b" * 63},
        {"tests": {"passed": 1}},
        {"tests": {"passed": 1, "failed": 0, "skipped": "canary"}},
    ],
)
def test_a_member_without_its_form_stays_here(wrong: dict[str, Any]) -> None:
    assert of_result({"outcome": "no_change", **wrong}, chat=False, most_files=0).members == {}


@pytest.mark.req("LA-045")
def test_an_answer_is_no_member() -> None:
    assert of_result({"outcome": "no_change", "answer": "x"}, chat=False, most_files=0).members == {}


@pytest.mark.req("LA-024")
def test_cancelled_has_no_other_member() -> None:
    outcome = of_result({"outcome": "cancelled", **METADATA}, chat=True, most_files=9)
    assert outcome.payload(JOB) == {"jobId": JOB, "outcome": "cancelled"}


@pytest.mark.req("CHAT-009", "CHAT-010")
@pytest.mark.parametrize(
    ("own", "most", "count"),
    [(4, 5, 5), (7, 5, 7), ("x", 5, 5), (None, 0, 0), (True, 0, 0), (2**53, 1, 1), (-3, 0, 0), (1.5, 0, 0)],
)
def test_the_count_of_a_chat(own: object, most: int, count: int) -> None:
    outcome = of_result({"outcome": "no_change", "filesChangedCount": own}, chat=True, most_files=most)
    assert outcome.payload(JOB) == {"jobId": JOB, "outcome": "no_change", "filesChangedCount": count}


@pytest.mark.req("CHAT-007")
def test_an_unexpected_pull_request_of_a_chat_is_passed_on() -> None:
    outcome = of_result({"outcome": "pr_opened", **METADATA}, chat=True, most_files=0)
    assert outcome.payload(JOB) == {"jobId": JOB, "outcome": "pr_opened", **METADATA}


@pytest.mark.req("TY-017")
@pytest.mark.parametrize(
    ("code", "passed"),
    [("infra", "infra"), ("policy_denied", "policy_denied"), ("llm", "unknown"), (None, "unknown"), ([], "unknown")],
)
def test_a_failure_has_one_of_three_codes(code: object, passed: str) -> None:
    assert of_result({"outcome": "failed", "errorCode": code}, chat=True, most_files=0) == failed(passed)


@pytest.mark.req("LA-027")
@pytest.mark.parametrize(
    ("event", "outcome"),
    [
        (None, failed("infra")),
        ({"state": "done"}, failed("infra")),
        ({"terminal": True}, failed("infra")),
        ({"state": "cancelled"}, CANCELLED),
        ({"state": "failed"}, failed("unknown")),
        ({"state": "failed", "errorCode": "policy_denied"}, failed("policy_denied")),
    ],
)
def test_an_end_without_a_result(event: dict[str, Any] | None, outcome: Outcome) -> None:
    assert of_terminal_event(event) == outcome


@pytest.mark.req("A2-045")
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (403, "policy_denied"),
        (401, "infra"),
        (409, "infra"),
        (400, "unknown"),
        (422, "unknown"),
        (404, "infra"),
        (500, "infra"),
        (None, "infra"),
    ],
)
def test_a_refusal_by_its_status(status: int | None, code: str) -> None:
    assert of_refusal(Agent2Error("http_error", status)) == failed(code)


@pytest.mark.req("CHAT-022")
@pytest.mark.parametrize(
    ("outcome", "state"),
    [("no_change", "done"), ("pr_opened", "done"), ("failed", "failed"), ("cancelled", "cancelled")],
)
def test_the_end_state_of_a_chat(outcome: str, state: str) -> None:
    assert Outcome(outcome).chat_state == state
