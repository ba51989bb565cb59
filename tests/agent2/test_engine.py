from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lab.agent2
from lab.agent2.engine import CHAT_PROMPT_BYTES, KEPT_JOBS, Engine
from lab.agent2.feed import Reader
from lab.agent2.script import Script
from lab.errors import ScenarioError
from lab.journal.events import Agent2Job, digest
from tests.agent2.written import NO_CHANGE, script_of

KINDS = ("fix", "implement", "chat")
PARTS = script_of('- repeat: { count: 20, every: 1s, text: "part {n}" }', NO_CHANGE)
SLOW = script_of('- text: "a"', "- wait: 1m", NO_CHANGE)


def engine_of(script: Script = SLOW, kinds: tuple[str, ...] = KINDS) -> Engine:
    return Engine(kinds, dict.fromkeys(KINDS, script), "tenant-1", {})


def body(job_id: object = "j1", kind: object = "fix", **more: object) -> dict[str, object]:
    return {"jobId": job_id, "kind": kind, **more}


def run(engine: Engine) -> None:
    """Let everything happen that is due until nothing is."""
    while (now := engine.next_timeout()) is not None:
        engine.handle_timeout(now)


@pytest.mark.req("A2-003")
@pytest.mark.parametrize("kinds", [(), ("fix", "implement"), KINDS])
def test_health_lists_the_kinds(kinds: tuple[str, ...]) -> None:
    assert engine_of(kinds=kinds).health().body == {"status": "up", "kinds": list(kinds)}


@pytest.mark.req("A2-007", "A2-008", "A2-009")
def test_any_object_with_a_job_id_and_a_kind_is_accepted() -> None:
    answer = engine_of().start_untrusted(body(extra=[1], requestText="why?"), 1.0)
    assert (answer.status, answer.body) == (202, {"jobId": "j1", "state": "accepted"})
    assert answer.events == (Agent2Job("j1", "accepted", "fix", digest("prompt", "why?")),)


@pytest.mark.parametrize(
    "given",
    [
        None,
        [],
        "x",
        {},
        {"jobId": "j1"},
        {"kind": "fix"},
        body(job_id=7),
        body(job_id=""),
        body(job_id="x" * 129),
        body(job_id="a b"),
        body(job_id="\ud800"),
        body(kind=["fix"]),
        body(requestText=7),
    ],
)
def test_a_body_of_another_shape_is_refused(given: object) -> None:
    engine = engine_of()
    answer = engine.start_untrusted(given, 1.0)
    assert (answer.status, answer.events, engine.next_timeout()) == (400, (), None)


@pytest.mark.req("A2-046", "A2-048")
@pytest.mark.parametrize(
    ("kinds", "kind"),
    [
        (KINDS, "quality"),
        ((*KINDS, "quality"), "quality"),
        (("fix", "implement"), "chat"),
        (KINDS, "paint"),
        ((*KINDS, "paint"), "paint"),
    ],
)
def test_a_kind_that_is_not_served_is_422(kinds: tuple[str, ...], kind: str) -> None:
    assert engine_of(kinds=kinds).start_untrusted(body(kind=kind), 1.0).status == 422


@pytest.mark.req("A2-047", "A2-048")
@pytest.mark.parametrize(
    ("kind", "prompt", "status"),
    [
        ("chat", "a" * CHAT_PROMPT_BYTES, 202),
        ("chat", "a" * (CHAT_PROMPT_BYTES + 1), 422),
        ("chat", "é" * (CHAT_PROMPT_BYTES // 2), 202),
        ("chat", "é" * (CHAT_PROMPT_BYTES // 2) + "a", 422),
        ("fix", "a" * (CHAT_PROMPT_BYTES + 1), 202),
    ],
)
def test_a_chat_has_a_limit_in_bytes(kind: str, prompt: str, status: int) -> None:
    assert CHAT_PROMPT_BYTES == 16384
    assert engine_of().start_untrusted(body(kind=kind, requestText=prompt), 1.0).status == status


@pytest.mark.req("A2-044")
def test_one_job_at_a_time() -> None:
    engine = engine_of()
    engine.start_untrusted(body("j1"), 1.0)
    assert engine.start_untrusted(body("j2"), 2.0).status == 409
    run(engine)
    assert engine.start_untrusted(body("j2"), 99.0).status == 202


def test_a_job_id_is_taken_for_good() -> None:
    engine = engine_of()
    engine.start_untrusted(body("j1"), 1.0)
    run(engine)
    assert engine.start_untrusted(body("j1"), 99.0).status == 409


@pytest.mark.parametrize("status", [400, 401, 403, 409, 422, 500, 503])
def test_a_script_may_order_the_answer(status: int) -> None:
    engine = engine_of(script_of(NO_CHANGE, orders=f"http: {{ status: {status} }}\n"))
    assert engine.start_untrusted(body(), 1.0).status == status
    assert not engine.knows("j1")


@pytest.mark.req("A2-011", "A2-012")
def test_the_state_of_a_job() -> None:
    engine = engine_of()
    engine.start_untrusted(body(), 1.0)
    states = [engine.state("j1").body]
    while (now := engine.next_timeout()) is not None:
        engine.handle_timeout(now)
        states.append(engine.state("j1").body)
    assert states == [
        {"jobId": "j1", "state": "accepted"},
        {"jobId": "j1", "state": "running"},
        {"jobId": "j1", "state": "done", "outcome": "no_change"},
    ]
    assert engine.state("j2").status == 404


@pytest.mark.req("A2-010")
@pytest.mark.parametrize("given", [None, {}, {"reason": "user"}, {"reason": "timeout"}])
def test_a_cancel_may_give_a_reason(given: object) -> None:
    engine = engine_of()
    engine.start_untrusted(body(), 1.0)
    engine.handle_timeout(1.0)
    answer = engine.cancel_untrusted("j1", given, 2.0)
    assert (answer.status, answer.body) == (202, {"jobId": "j1", "state": "cancelled"})
    assert engine.state("j1").body["outcome"] == "cancelled"


def test_a_cancel_may_be_repeated() -> None:
    engine = engine_of()
    engine.start_untrusted(body(), 1.0)
    first = engine.cancel_untrusted("j1", None, 2.0)
    again = engine.cancel_untrusted("j1", None, 3.0)
    assert (again.status, again.body, again.events) == (first.status, first.body, ())


@pytest.mark.parametrize(
    ("job_id", "given", "status"), [("j2", None, 404), ("j1", [], 400), ("j1", {"reason": 7}, 400)]
)
def test_a_cancel_that_cannot_be_is_refused(job_id: str, given: object, status: int) -> None:
    engine = engine_of()
    engine.start_untrusted(body(), 1.0)
    assert engine.cancel_untrusted(job_id, given, 2.0).status == status
    assert engine.state("j1").body["state"] == "accepted"


def test_a_script_may_ignore_a_cancel() -> None:
    engine = engine_of(script_of("- wait: 1m", NO_CHANGE, orders="ignore_cancel: true\n"))
    engine.start_untrusted(body(), 1.0)
    engine.handle_timeout(1.0)
    answer = engine.cancel_untrusted("j1", None, 2.0)
    assert (answer.status, answer.body["state"], answer.events) == (202, "running", ())
    run(engine)
    assert engine.state("j1").body["outcome"] == "no_change"


def waiting() -> Engine:
    engine = engine_of(script_of("- approval: { id: ap }", NO_CHANGE))
    engine.start_untrusted(body(), 1.0)
    run(engine)
    return engine


@pytest.mark.req("A2-013")
@pytest.mark.parametrize(("decision", "outcome"), [("approve", "no_change"), ("deny", "failed")])
def test_a_decision_moves_the_job(decision: str, outcome: str) -> None:
    engine = waiting()
    given = {"jobId": "j1", "decision": decision}
    answer = engine.decide_untrusted("ap", given, 5.0)
    assert (answer.status, answer.body) == (200, {"approvalId": "ap", **given})
    run(engine)
    assert engine.state("j1").body["outcome"] == outcome
    again = engine.decide_untrusted("ap", given, 6.0)
    assert (again.status, again.events) == (200, ())
    other = {"approve": "deny", "deny": "approve"}[decision]
    assert engine.decide_untrusted("ap", {"jobId": "j1", "decision": other}, 7.0).status == 409


@pytest.mark.parametrize(
    ("approval_id", "given", "status"),
    [
        ("other", {"jobId": "j1", "decision": "approve"}, 404),
        ("ap", {"jobId": "j2", "decision": "approve"}, 404),
        ("ap", {"jobId": "j1", "decision": "perhaps"}, 400),
        ("ap", {"jobId": "j1", "decision": ["approve"]}, 400),
        ("ap", {"decision": "approve"}, 400),
        ("ap", None, 400),
    ],
)
def test_a_decision_that_does_not_fit_changes_nothing(approval_id: str, given: object, status: int) -> None:
    engine = waiting()
    assert engine.decide_untrusted(approval_id, given, 5.0).status == status
    assert engine.state("j1").body["state"] == "waiting_approval"


def test_an_approval_is_forgotten_once_the_job_is_cancelled() -> None:
    engine = waiting()
    engine.cancel_untrusted("j1", None, 5.0)
    assert engine.decide_untrusted("ap", {"jobId": "j1", "decision": "approve"}, 6.0).status == 404


@pytest.mark.req("A2-038", "A2-060")
def test_streams_replay_from_the_start_during_and_after_the_job() -> None:
    engine = engine_of()
    engine.start_untrusted(body(), 1.0)
    engine.handle_timeout(1.0)
    early, frames = engine.read_lines("j1"), engine.read_frames("j1")
    assert early is not None
    assert frames is not None
    assert early.take() == ('{"type":"text","text":"a"}',)
    run(engine)
    late, late_frames = engine.read_lines("j1"), engine.read_frames("j1")
    assert late is not None
    assert late_frames is not None
    assert late.take() == ('{"type":"text","text":"a"}',)
    assert [frame.seq for frame in late_frames.take()] == [frame.seq for frame in frames.take()] == [1, 2]
    assert early.ended
    assert late.ended
    assert late_frames.ended


@pytest.mark.req("A2-038", "A2-060")
@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0.0, 3.0), st.booleans()), max_size=30))
def test_any_reader_at_any_time_sees_the_same(moves: list[tuple[float, bool]]) -> None:
    """Each move lets time pass, then opens a reader or has all readers read."""
    engine = engine_of(PARTS)
    engine.start_untrusted(body(), 0.0)
    produced = [f'{{"type":"text","text":"part {n}"}}' for n in range(1, 21)]
    readers: list[tuple[Reader[str], list[str]]] = []
    now = 0.0
    for passed, opens in moves:
        now += passed
        engine.handle_timeout(now)
        if opens and (reader := engine.read_lines("j1")) is not None:
            readers.append((reader, []))
            continue
        for reader, seen in readers:
            seen.extend(reader.take())
            assert seen == produced[: int(now)]
    run(engine)
    for reader, seen in readers:
        seen.extend(reader.take())
        assert (seen, reader.ended) == (produced, True)


@pytest.mark.parametrize(("stream", "breaks"), [("events", (True, False)), ("stream", (False, True))])
def test_a_script_breaks_the_stream_it_names(stream: str, breaks: tuple[bool, bool]) -> None:
    orders = f"break_stream: {{ stream: {stream}, after: 1 }}\n"
    engine = engine_of(script_of("- done", "- done", NO_CHANGE, orders=orders))
    engine.start_untrusted(body(), 1.0)
    run(engine)
    frames, lines = engine.read_frames("j1"), engine.read_lines("j1")
    assert frames is not None
    assert lines is not None
    taken = (frames.take(), lines.take())
    assert (frames.broken, lines.broken) == breaks
    assert [len(items) for items in taken] == [1 if broken else 2 for broken in breaks]


def test_an_unknown_job_has_no_streams() -> None:
    engine = engine_of()
    assert (engine.read_frames("j1"), engine.read_lines("j1")) == (None, None)


def test_the_oldest_jobs_are_forgotten() -> None:
    engine = engine_of(script_of(NO_CHANGE))
    for index in range(KEPT_JOBS + 2):
        engine.start_untrusted(body(f"j{index}"), float(index))
        run(engine)
    assert [engine.knows(f"j{index}") for index in (0, 1, 2, KEPT_JOBS + 1)] == [False, False, True, True]


def test_a_process_that_died_knows_nothing() -> None:
    """Neither the job that ran nor its id, and nothing is due."""
    engine = engine_of()
    engine.start_untrusted(body(), 0.0)
    engine.forget()
    assert (engine.next_timeout(), engine.knows("j1"), engine.state("j1").status) == (None, False, 404)
    assert engine.start_untrusted(body(), 1.0).status == 202


def test_a_kind_without_a_script_has_a_built_in_one() -> None:
    engine = Engine(KINDS, {}, "tenant-1", {})
    engine.start_untrusted(body(kind="chat"), 1.0)
    run(engine)
    assert engine.state("j1").body["outcome"] == "no_change"


def test_a_canary_without_a_value_is_refused_at_its_line() -> None:
    script = script_of("- done", '- answer: "{canary:key}"', NO_CHANGE)
    with pytest.raises(ScenarioError, match="`key` has no value") as caught:
        engine_of(script)
    assert caught.value.place.line == 5


def test_a_canary_is_put_in_at_run_time() -> None:
    engine = Engine(KINDS, {"fix": script_of('- answer: "{canary:key}"', NO_CHANGE)}, "tenant-1", {"key": "s3cret"})
    engine.start_untrusted(body(), 1.0)
    run(engine)
    reader = engine.read_lines("j1")
    assert reader is not None
    assert reader.take() == ('{"type":"answer","text":"s3cret"}',)


IMPURE = {"aiohttp", "asyncio", "datetime", "os", "random", "secrets", "socket", "threading", "time", "uuid"}


@pytest.mark.parametrize("module", ["beats", "defaults", "engine", "feed", "job", "script", "steps"])
def test_all_but_the_server_do_without_sockets_clocks_and_chance(module: str) -> None:
    tree = ast.parse((Path(lab.agent2.__path__[0]) / f"{module}.py").read_text())
    imported = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported
    assert not imported & IMPURE
