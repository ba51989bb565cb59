"""Every kind of step: what it says when it succeeds, and what a user sees when it does not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.errors import ExitStatus
from lab.journal.events import FaultFired, StepStarted
from lab.partner.client.driver import PartnerDriver
from lab.partner.client.history_walk import HistoryWalk
from lab.partner.client.outcomes import Done
from lab.run.partner import steps
from lab.run.verdict import Outcome
from tests.run.partner.played import (
    ASKED,
    BOUND,
    LONG_AGENT,
    OPENED,
    STORE_AGENT,
    events_of,
    finding_of,
    last_step,
    notes,
    passed,
    play,
    told,
)

LOST = "  - fault: { link: partner_api, cut: true }\n"
BOTH_TEAMS = "{ teams: [shop, office], agents: { store: { script: fixtures/partner/product-9001.yaml } } }"


def test_each_kind_says_what_came_of_it(tmp_path: Path) -> None:
    """In the notes of the journal, without content."""
    result = play(
        tmp_path,
        """\
  - membership: { user: anna }
  - conversation: { conversation: c1, user: anna }
  - grant: { conversation: c1 }
  - context: { conversation: c1, active: false, version: 0 }
  - bind: { conversation: c1 }
  - message: { run: r1, conversation: c1, text: "What does product 9001 cost?" }
  - context: { conversation: c1, active: true, version: 1 }
  - follow: { run: r1, until: { events: 3 } }
  - follow: { run: r1 }
  - follow: { run: r1, replay: true }
  - follow: { run: r1, replay: true, until: { events: 11 } }
  - poll: { run: r1, until: now }
  - history: { conversation: c1, limit: 1 }
  - history: { conversation: c1, user: anna }
  - recover: { conversation: c1 }
  - attach: { file: f1, conversation: c1, text: a list }
  - attach: { file: f2, conversation: c1, type: image/png, size: 100 }
  - download: { file: f2 }
  - message: { run: r2, conversation: c1, text: "And that?", files: [f1, f2], timezone: Europe/Berlin }
  - message: { run: r3, conversation: c1, text: "And that?", files: [f1, f2], timezone: Europe/Berlin, again: r2 }
  - poll: { run: r2, until: running }
  - poll: { run: r2 }
  - conversation: { conversation: c2, user: anna, again: c1 }
  - store: { misbehave: [ { do: reset }, { do: http-status, status: 503 } ] }
  - store: { misbehave: [] }
  - store: { forget_sessions: true }
  - idle: 1s
  - membership: { user: anna, role: admin, active: false }
""",
    )
    assert [(one.outcome, one.sentence) for one in result.verdict.findings] == [
        (Outcome.UNKNOWN, "the store had no occasion for reset"),
        (Outcome.UNKNOWN, "the store had no occasion for http-status"),
    ], told(result)
    assert notes(result) == [
        "member, version 1",
        "with a store",
        "",
        "version 0, not active",
        "version 1",
        "accepted",
        "version 1, active",
        "3 events",
        "11 events · completed",
        "11 events again",
        "11 events again",
        "completed",
        "2 items in 2 pages",
        "2 items",
        "version 2",
        "text, 6 bytes",
        "image, 100 bytes",
        "100 bytes, image/png",
        "accepted",
        "the run of r2, running",
        "running",
        "completed",
        "with a store",
        "2 rules",
        "behaves",
        "0 sessions forgotten",
        "",
        "admin, version 2, ended",
    ]


@pytest.mark.parametrize(
    ("before", "step", "note"),
    [
        ("", "membership: { user: anna, fails: CHAT_CONFLICT }", "it succeeded, CHAT_CONFLICT was due"),
        (
            "",
            "membership: { user: anna, lease: 10m, fails: CHAT_CONFLICT }",
            "refused: CHAT_INVALID (400); CHAT_CONFLICT was due",
        ),
        ("", "membership: { user: anna, team: nowhere }", "refused: CHAT_UNAVAILABLE (404); it must succeed"),
        (
            "",
            "membership: { user: anna, revision: 1, fails: EXECUTION_DENIED }",
            "it succeeded, EXECUTION_DENIED was due",
        ),
        (LOST, "membership: { user: anna }", "no usable answer: refused at try 8"),
        (LOST, "membership: { user: anna, within: 1s }", "not within 1 s: no answer came"),
        (
            OPENED,
            "conversation: { conversation: c2, user: anna, fails: EXECUTION_DENIED }",
            "it succeeded, EXECUTION_DENIED was due",
        ),
        (OPENED, "grant: { conversation: c1, fails: not_found }", "it succeeded, not_found was due"),
        (
            OPENED,
            "grant: { conversation: c1, wrong: { actor: other }, fails: not_found }",
            "it succeeded, not_found was due",
        ),
        (OPENED, "bind: { conversation: c1, fails: EXECUTION_DENIED }", "it succeeded, EXECUTION_DENIED was due"),
        (
            BOUND,
            "bind: { conversation: c1, expected: 7 }",
            "refused: MCP_CONTEXT_CONFLICT (409); it must succeed",
        ),
        (
            OPENED,
            "bind: { conversation: c1, destination: 'https://elsewhere.example/mcp', fails: EXECUTION_DENIED }",
            "refused: MCP_CONTEXT_DENIED (403); EXECUTION_DENIED was due",
        ),
        (
            BOUND,
            "context: { conversation: c1, active: false, version: 7 }",
            "the context is version 1, active; version 7 and not active was due",
        ),
        (BOUND, "context: { conversation: c1, version: 2 }", "the context is version 1, active; version 2 was due"),
        (
            BOUND,
            "context: { conversation: c1, active: false }",
            "the context is version 1, active; not active was due",
        ),
        (BOUND, "context: { conversation: c1, fails: EXECUTION_DENIED }", "it succeeded, EXECUTION_DENIED was due"),
        (BOUND, "recover: { conversation: c1, fails: EXECUTION_DENIED }", "it succeeded, EXECUTION_DENIED was due"),
        (
            OPENED,
            "attach: { file: f1, conversation: c1, text: x, fails: EXECUTION_DENIED }",
            "it succeeded, EXECUTION_DENIED was due",
        ),
        (
            OPENED,
            "attach: { file: f1, conversation: c1, text: x, type: application/x-sh }",
            "refused: CHAT_ATTACHMENT_TYPE_NOT_SUPPORTED (415); it must succeed",
        ),
        (
            BOUND,
            "message: { run: r1, conversation: c1, text: x, fails: EXECUTION_DENIED }",
            "it succeeded, EXECUTION_DENIED was due",
        ),
        (
            BOUND,
            "message: { run: r1, conversation: c1, text: x, user: eve }",
            "refused: EXECUTION_DENIED (403); it must succeed",
        ),
        (ASKED, "follow: { run: r1, until: { events: 1000 } }", "the stream ended after 11 events, 1000 were due"),
        (
            ASKED + "  - poll: { run: r1 }\n",
            "follow: { run: r1, replay: true, until: { events: 1000 } }",
            "the stream ended after 11 events, 1000 were due",
        ),
        (ASKED, "follow: { run: r1, fails: EXECUTION_DENIED }", "it succeeded, EXECUTION_DENIED was due"),
        (ASKED, "follow: { run: r1, after: 'x:1' }", "refused: CHAT_INVALID (400); it must succeed"),
        (ASKED, "follow: { run: r1, user: eve }", "refused: EXECUTION_DENIED (403); it must succeed"),
        (ASKED, "poll: { run: r1, fails: EXECUTION_DENIED }", "it succeeded, EXECUTION_DENIED was due"),
        (ASKED, "poll: { run: r1, user: eve }", "refused: EXECUTION_DENIED (403); it must succeed"),
        (
            ASKED + "  - poll: { run: r1 }\n",
            "poll: { run: r1, until: running }",
            "the run is completed already, running was due",
        ),
        (ASKED, "history: { conversation: c1, cursor: x }", "refused: CHAT_INVALID (400); it must succeed"),
        (ASKED, "history: { conversation: c1, fails: EXECUTION_DENIED }", "it succeeded, EXECUTION_DENIED was due"),
        (
            OPENED + "  - fault: { link: store, toxic: latency, attributes: { latency: 5 }, id: slow }\n",
            "wait: { for: fault.slow.fired, within: 1s }",
            "not within 1 s: it did not come",
        ),
    ],
)
def test_a_step_that_fails(before: str, step: str, note: str, tmp_path: Path) -> None:
    """The finding says why, in a line; the run ends there, and a promise broke."""
    result = play(tmp_path, f"{before}  - {step}\n")
    assert last_step(result) == ("failed", note)
    assert result.verdict.outcome is Outcome.FAIL
    finding = finding_of(result, "step")
    assert (finding.seen, finding.line) == (note, events_of(result, StepStarted)[-1].line)
    assert result.defects == ()


def test_a_deadline_of_a_step_says_how_far_it_came(tmp_path: Path) -> None:
    result = play(tmp_path, f"{ASKED}  - follow: {{ run: r1, within: 1s }}\n", LONG_AGENT)
    assert last_step(result) == ("failed", "not within 1 s: 50 events of the run came")


def test_the_deadline_of_the_run(tmp_path: Path) -> None:
    """It ends the step that is under way, and what was seen until then is judged all the same."""
    result = play(
        tmp_path,
        f"{ASKED}  - follow: {{ run: r1 }}\n",
        LONG_AGENT,
        "deadline: 2s\nexpect: [{ figures.events: { min: 90 } }]\n",
    )
    assert last_step(result)[0] == "interrupted"
    assert finding_of(result, "step").seen == "the run's deadline of 2 s is over"
    assert [held.held for held in result.verdict.held] == [True]


@pytest.mark.parametrize(
    ("refused", "step", "note"),
    [
        (
            "  - membership: { user: anna }\n"
            "  - conversation: { conversation: c1, user: anna, team: nowhere, fails: CHAT_UNAVAILABLE }\n",
            "grant: { conversation: c1 }",
            "conversation c1 was never opened: its creation was refused or got no answer",
        ),
        (
            f"{OPENED}  - message: {{ run: r1, conversation: c1, text: x, fails: MCP_CONTEXT_DENIED }}\n",
            "follow: { run: r1 }",
            "run r1 never began: its message was refused or got no answer",
        ),
        (
            f"{OPENED}  - attach: {{ file: f1, conversation: c1, text: x, type: a/b,"
            " fails: CHAT_ATTACHMENT_TYPE_NOT_SUPPORTED }\n",
            "download: { file: f1 }",
            "file f1 was never stored: its upload was refused or got no answer",
        ),
    ],
)
def test_a_thing_that_an_earlier_step_did_not_get(refused: str, step: str, note: str, tmp_path: Path) -> None:
    """The refusal was due; whatever then needs the thing fails, and is no defect."""
    result = play(tmp_path, f"{refused}  - {step}\n")
    assert "as it must be" in notes(result)[-2], told(result)
    assert last_step(result) == ("failed", note)
    assert (result.verdict.outcome, result.defects) == (Outcome.FAIL, ())


@pytest.mark.parametrize(
    ("first", "second", "note"),
    [
        (
            BOUND,
            "conversation: { conversation: c2, user: anna, again: c1 }",
            "another conversation than c1 was made, though the Idempotency-Key was the same",
        ),
        (
            f"{ASKED}  - poll: {{ run: r1 }}\n",
            'message: { run: r2, conversation: c1, text: "What does product 9001 cost?", again: r1 }',
            "another run than that of r1 began, though the Idempotency-Key was the same",
        ),
    ],
)
def test_a_key_that_was_sent_again_and_made_another_thing(
    first: str, second: str, note: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an API does that keeps no receipts; here the driver's keys are never the same."""
    count = iter(range(1000))
    monkeypatch.setattr(PartnerDriver, "key_of", lambda _self, _intent: f"key-{next(count)}")
    result = play(tmp_path, f"{first}  - {second}\n")
    assert last_step(result) == ("failed", note)


def test_a_file_that_comes_back_as_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bytes are compared, and not told."""
    contents: Iterator[bytes] = iter((b"as it was sent", b"as it was"))
    monkeypatch.setattr(steps, "content_of", lambda _step: next(contents))
    result = play(
        tmp_path, f"{OPENED}  - attach: {{ file: f1, conversation: c1, text: x }}\n  - download: {{ file: f1 }}\n"
    )
    assert last_step(result) == ("failed", "14 bytes came that are not those of the upload")


def test_a_history_without_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def walk(_self: PartnerDriver, _label: str, limit: int | None = None) -> Done[HistoryWalk]:
        return Done(HistoryWalk(pages=3, end="repeated-cursor"), 200)

    monkeypatch.setattr(PartnerDriver, "history", walk)
    result = play(tmp_path, f"{OPENED}  - history: {{ conversation: c1 }}\n")
    assert last_step(result) == ("failed", "the walk through the history ended at a repeated cursor")


def test_the_same_employee_in_two_teams(tmp_path: Path) -> None:
    """One external id, two memberships; a call that names the employee means the first team."""
    result = play(
        tmp_path,
        "  - membership: { user: anna }\n  - membership: { user: anna, team: office }\n"
        "  - conversation: { conversation: c1, user: anna }\n"
        "  - conversation: { conversation: c2, user: anna, team: office, fails: CHAT_UNAVAILABLE }\n",
        BOTH_TEAMS,
    )
    passed(result)


@pytest.mark.parametrize("kind", ["cut: true, for: 500ms", "reset: true"])
def test_a_stream_that_is_broken_is_read_on(kind: str, tmp_path: Path) -> None:
    """Following goes on beside the steps, through a second stream."""
    result = play(
        tmp_path,
        f"{ASKED}  - follow: {{ run: r1, until: {{ events: 40 }} }}\n  - fault: {{ link: partner_api, {kind} }}\n"
        "  - follow: { run: r1 }\n",
        LONG_AGENT,
        "expect: [{ stream.r1.opened: { min: 2 } }, { stream.r1.events: { contiguous: true, min: 240 } }]\n",
    )
    passed(result)
    assert re.fullmatch(r"24\d events in [23] streams · completed", last_step(result)[1])
    assert len(events_of(result, FaultFired)) == 1


@pytest.mark.parametrize(
    ("api", "then", "note"),
    [
        (f"{{ keeps_state: true, {LONG_AGENT[2:]}", "poll: { run: r1 }", "interrupted"),
        (
            LONG_AGENT,
            "poll: { run: r1, fails: CREDENTIAL_REJECTED }",
            "refused: CREDENTIAL_REJECTED (401), as it must be",
        ),
    ],
    ids=["with its state", "without"],
)
@pytest.mark.req("FX-026")
def test_a_crash_of_the_partner_api(api: str, then: str, note: str, tmp_path: Path) -> None:
    """With a state it knows the run again, which it does not go on with; without one it is another instance."""
    crash = "  - fault: { partner: partner_api, crash: true, for: 500ms }\n"
    result = play(tmp_path, f"{ASKED}  - follow: {{ run: r1, until: {{ events: 20 }} }}\n{crash}  - {then}\n", api)
    assert last_step(result) == ("done", note), told(result)


def test_a_crash_of_the_store(tmp_path: Path) -> None:
    """It comes back without its sessions, and the next turn is served."""
    result = play(
        tmp_path,
        f"{ASKED}  - poll: {{ run: r1 }}\n  - fault: {{ partner: store, crash: true, for: 500ms }}\n"
        '  - message: { run: r2, conversation: c1, text: "Gone?" }\n  - poll: { run: r2 }\n  - idle: 1s\n'
        '  - message: { run: r3, conversation: c1, text: "Back?" }\n  - poll: { run: r3 }\n',
        STORE_AGENT,
        "expect: [{ run.r1.status: completed }, { run.r2.status: failed }, { run.r3.status: completed }]\n",
    )
    passed(result)


def test_a_control_while_the_partner_api_is_crashed(tmp_path: Path) -> None:
    """The scenario is wrong, not the lab."""
    crash = "  - fault: { partner: partner_api, crash: true }\n"
    result = play(tmp_path, f"{OPENED}{crash}  - control: {{ budget: spent }}\n")
    assert result.verdict.outcome.exit_status is ExitStatus.USAGE
    assert last_step(result)[1].startswith("a control was used while the partner API was crashed.")
    assert result.defects == ()
