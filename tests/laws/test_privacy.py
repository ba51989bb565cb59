"""Secrets are masked before they are kept or given away, and the disk is its owner's alone."""

from __future__ import annotations

import pytest

from lab.journal.events import SecretsDrawn, SutFile
from lab.laws import Status
from tests.laws.journals import JOB, Tale

MASKED = "secrets-masked"
PRIVATE = "state-private"
FILE = "chats/jobs/x.jsonl"


def tale(kind: str = "chat", *secrets: str) -> Tale:
    t = Tale()
    t.connect()
    t.assign(kind=kind)
    if secrets:
        t.add(SecretsDrawn(secrets), "run")
    return t


def kept(t: Tale, *canaries: str, mode: int = 0o600, folder: bool = False, path: str = FILE) -> int:
    return t.add(SutFile("la", path, folder, mode, None if folder else canaries), "sut")


@pytest.mark.req("CHAT-026", "CHAT-060")
@pytest.mark.parametrize("content", ["job.stream", "chat.session"])
def test_a_secret_in_a_body(content: str) -> None:
    t = tale("chat", "key", "other")
    n = t.body("r", content, JOB, canaries=("prompt", "key"))
    found = t.violation(MASKED)
    assert (found.seen, found.due, found.entries) == (f"canary key in a body of {content}", "every secret masked", (n,))


@pytest.mark.req("CHAT-025")
def test_a_secret_on_the_disk() -> None:
    t = tale("chat", "key")
    n = kept(t, "key", "prompt")
    found = t.violation(MASKED)
    assert (found.seen, found.entries) == (f"canary key in the state's file {FILE}", (n,))


def test_what_is_no_secret_may_stand_in_both() -> None:
    t = tale("chat", "key")
    t.body("r", "job.stream", JOB, canaries=("prompt", "answer"))
    t.body("s", "job.stream", JOB, status="error", errorCode="internal")
    kept(t, "answer")
    kept(t, folder=True, mode=0o700)
    assert (t.status(MASKED), t.judged(MASKED).judgement.judged) == (Status.HELD, 2)


def test_without_secrets_there_is_nothing_to_mask() -> None:
    t = tale()
    t.body("r", "job.stream", JOB, canaries=("prompt",))
    kept(t, "prompt")
    assert t.status(MASKED) is Status.NOTHING


@pytest.mark.req("CHAT-061")
@pytest.mark.parametrize(
    ("mode", "folder", "due"), [(0o644, False, "0600"), (0o620, False, "0600"), (0o750, True, "0700")]
)
def test_others_may_look_in(mode: int, folder: bool, due: str) -> None:
    t = tale()
    n = kept(t, mode=mode, folder=folder, path="chats")
    found = t.violation(PRIVATE)
    assert (found.due, found.entries) == (due, (n,))
    assert found.seen == f"the state's {'folder' if folder else 'file'} chats with mode {mode:04o}"


@pytest.mark.req("CHAT-061")
def test_nobody_else_may() -> None:
    t = tale()
    kept(t)
    kept(t, mode=0o400)
    kept(t, mode=0o700, folder=True)
    # The state's own folder is whoever's made it.
    kept(t, mode=0o755, folder=True, path="")
    assert (t.status(PRIVATE), t.judged(PRIVATE).judgement.judged) == (Status.HELD, 3)


@pytest.mark.req("SEC-002")
@pytest.mark.parametrize("spelling", ["prompt", "prompt.hex"])
def test_the_inputs_of_a_job_on_the_disk(spelling: str) -> None:
    t = tale("fix")
    n = kept(t, spelling)
    found = t.violation(PRIVATE)
    assert (found.seen, found.entries) == (f"the inputs of a job in the state's file {FILE}", (n,))


def test_a_chat_s_question_is_kept() -> None:
    t = tale("chat")
    kept(t, "prompt")
    assert t.status(PRIVATE) is Status.HELD


def test_an_early_stop() -> None:
    t = tale("chat", "key")
    t.end("failed")
    assert (t.status(MASKED), t.status(PRIVATE)) == (Status.NOTHING, Status.NOTHING)
