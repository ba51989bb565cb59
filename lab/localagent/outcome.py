"""How a job ends: from agent2's last words, or from what went wrong, to the payload of job.result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lab.errors import Agent2Error
from lab.localagent.shapes import count, picked, sha256, text

# TY-017: the codes that this agent uses for a job that agent2 calls failed.
_CODES = frozenset({"infra", "policy_denied", "unknown"})


def _tests(value: object) -> bool:
    names = {"passed", "failed", "skipped"}
    return isinstance(value, dict) and set(value) == names and all(count(item) for item in value.values())


_RESULT_FORMS = {
    "prUrl": text(r"https://[!-~]+", longest=512),
    "branch": text(r"[!-~]{1,255}"),
    "commitSha": text(r"[0-9a-f]{40}|[0-9a-f]{64}"),
    "filesChangedCount": count,
    "diffSha256": sha256,
    "tests": _tests,
}


@dataclass(frozen=True)
class Outcome:
    """A job's end: pr_opened, no_change, failed or cancelled, with the members that go with it."""

    outcome: str
    error_code: str | None = None
    members: Mapping[str, object] = field(default_factory=dict)

    def payload(self, job_id: str) -> dict[str, object]:
        """The payload of job.result (TY-016)."""
        code = {} if self.error_code is None else {"errorCode": self.error_code}
        return {"jobId": job_id, "outcome": self.outcome, **code, **self.members}

    @property
    def chat_state(self) -> str:
        """The end state of the chat's record (CHAT-022)."""
        return self.outcome if self.outcome in ("failed", "cancelled") else "done"


CANCELLED = Outcome("cancelled")


def failed(code: str) -> Outcome:
    """A failure with its code."""
    return Outcome("failed", code)


def of_result(payload: Mapping[str, object], *, chat: bool, most_files: int) -> Outcome:
    """What a job.result of agent2 means; `most_files` is the largest count its events gave."""
    outcome = str(payload["outcome"])
    if outcome == "cancelled":
        # LA-024: nothing else is passed on.
        return CANCELLED
    if outcome == "failed":
        return failed(_code(payload))
    # LA-025, CHAT-007: metadata is passed on as it is, in the form that the protocol has for it.
    members = picked(payload, _RESULT_FORMS)
    if chat:
        # CHAT-009, CHAT-010: the larger count, and always one.
        own = payload.get("filesChangedCount")
        members["filesChangedCount"] = max(own if isinstance(own, int) and count(own) else 0, most_files)
    return Outcome(outcome, members=members)


def of_terminal_event(payload: Mapping[str, object] | None) -> Outcome:
    """The end of a job whose events stopped without a result (LA-027)."""
    if payload is None or payload.get("state") not in ("failed", "cancelled"):
        return failed("infra")
    return CANCELLED if payload["state"] == "cancelled" else failed(_code(payload))


def of_refusal(error: Agent2Error) -> Outcome:
    """The end of a job that agent2 did not take (A2-045)."""
    codes = {403: "policy_denied", 400: "unknown", 422: "unknown"}
    return failed("infra" if error.status is None else codes.get(error.status, "infra"))


def _code(payload: Mapping[str, object]) -> str:
    code = payload.get("errorCode")
    return code if isinstance(code, str) and code in _CODES else "unknown"
