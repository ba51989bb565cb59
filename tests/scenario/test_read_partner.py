"""The partner leg of the language: what becomes of a right scenario, and what each wrong one is told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.errors import ScenarioErrors
from lab.scenario import partner_model
from lab.scenario.model import FaultStep, LinkSpec, Scenario
from lab.scenario.partner_model import (
    AttachStep,
    ControlStep,
    MembershipStep,
    MisbehaviourSpec,
    PartnerAgentSpec,
    StoreStep,
)
from lab.scenario.read_expect import TIMINGS
from lab.scenario.read_partner_steps import PartnerStepReader
from lab.scenario.reading import Reading
from tests.scenario.legs import FOLDER, PARTNER_FILES
from tests.scenario.partner_texts import FULL_PARTNER, SHORT_PARTNER, partner_project
from tests.scenario.texts import load


def full(tmp_path: Path) -> Scenario:
    return load(partner_project(tmp_path), "full", FULL_PARTNER)


def test_participants(tmp_path: Path) -> None:
    scenario = full(tmp_path)
    assert scenario.partner is not None
    api, store, issuer = scenario.partner.api, scenario.partner.store, scenario.partner.issuer
    script = (tmp_path / "fixtures" / "partner" / "answer.yaml").resolve()
    assert (api.use, api.teams, api.keep_alive) == ("http://127.0.0.1:3005", ("shop", "office"), 1.0)
    assert api.agents == {
        "store": PartnerAgentSpec("store", "shop", script=script),
        "talk": PartnerAgentSpec("talk", "office", "none", profile=False),
    }
    assert store.misbehave == (
        MisbehaviourSpec("slow", tool="catalog_get", nth=2, seconds=0.3, line=19),
        MisbehaviourSpec("http-status", method="tools/list", status=503, line=20),
    )
    assert issuer.ttl == 60.0
    assert scenario.links["front"] == LinkSpec("front", "issuer", delay=0.02, line=22)
    assert (scenario.gateways, scenario.agent2s, scenario.local_agents) == ({}, {}, {})


def test_defaults(tmp_path: Path) -> None:
    scenario = load(tmp_path, "short", SHORT_PARTNER)
    assert list(scenario.links) == ["partner_api", "store", "issuer"]
    assert scenario.partner is not None
    assert scenario.partner.api.agents == {"store": PartnerAgentSpec("store", "shop")}
    assert scenario.steps == (MembershipStep(5, None, "anna", "shop"),)


def test_steps(tmp_path: Path) -> None:
    steps = full(tmp_path).steps
    assert steps[0] == MembershipStep(24, 1.0, "anna", "office", "owner", False, 4, None, "CHAT_CONFLICT")
    assert isinstance(steps[1], MembershipStep)
    assert steps[1].lease == -1.0
    assert isinstance(steps[9], AttachStep)
    assert (steps[9].name, steps[9].type) == ("f2.plain", "text/plain")
    controls = [(step.control, step.value) for step in steps if isinstance(step, ControlStep)]
    assert controls == [("clock", 360.0), ("remove", "c1")]
    stores = [(step.misbehave, step.forget_sessions) for step in steps if isinstance(step, StoreStep)]
    assert stores == [((MisbehaviourSpec("reset", line=61),), False), (None, True)]
    assert [step.fault.target for step in steps if isinstance(step, FaultStep)] == ["link front", "service store"]


def _parts(value: object) -> Iterator[Any]:
    if is_dataclass(value) and not isinstance(value, type):
        yield value
        for field in fields(value):
            yield from _parts(getattr(value, field.name))
    elif isinstance(value, dict | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _parts(each)


def test_every_field_of_the_model_is_reached(tmp_path: Path) -> None:
    """Each class of the model is made, and each field with a default gets another value somewhere."""
    reached: set[tuple[str, str]] = set()
    for part in _parts(full(tmp_path)):
        for field in fields(part):
            default = field.default_factory() if field.default_factory is not MISSING else field.default
            if getattr(part, field.name) != (None if default is MISSING else default):
                reached.add((type(part).__name__, field.name))
    classes = [
        each
        for each in vars(partner_model).values()
        if isinstance(each, type) and is_dataclass(each) and each.__module__ == partner_model.__name__
    ]
    due = {(each.__name__, field.name) for each in classes for field in fields(each)}
    assert due - reached == {("StoreStep", "within")}


def wrong(tmp_path: Path, old: str, new: str) -> list[str]:
    assert old in SHORT_PARTNER
    with pytest.raises(ScenarioErrors) as raised:
        load(partner_project(tmp_path), "short", SHORT_PARTNER.replace(old, new))
    return [str(error) for error in raised.value.errors]


STEP = "membership: { user: anna }"
API = "partner_api: {}"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (API, f"{API}\nagent2: {{}}", "a scenario is of one of them"),
        (STEP, "assign: { job: j, kind: chat }", "`assign` is no step of the partner leg"),
        (API, "gateway: {}", "`membership` is no step of the chat leg"),
        (STEP, "poll: { run: r1 }", "no step makes a run `r1`"),
        (STEP, "control: { clock: 1m }", "`control` needs the lab's own controls"),
        (
            STEP,
            "call: { method: GET, path: /x, status: 401, key: chta }",
            "no key is called `chta`; there are `chat`, ",
        ),
        (STEP, "call: { method: GET, path: /x, status: 401, key: 'only:chat:read' }", "needs the lab's own controls"),
        (STEP, "wait: { for: local_agent.ready }", "fault.<id>.fired"),
        (STEP, "fault: { frame: ack, from: gateway, do: drop }", "`frame` is of no fault of the partner leg"),
        (STEP, "fault: { link: gateway, cut: true }", "`gateway`"),
        (API, "issuer: { ttl: 2h }", "due 1 to 1800 s"),
        (API, "store: { misbehave: [ { do: slow } ] }", "`slow` needs `for`"),
        (API, "store: { misbehave: [ { do: reset, for: 1s } ] }", "no meaning for `reset`"),
        (API, "store: { misbehave: [ { do: reset, tool: x, method: ping } ] }", "goes with the method tools/call"),
        (API, "store: { misbehave: [ { do: http-status, status: 450 } ] }", "`status` is one of 401"),
        (STEP, "membership: { user: anna, role: onwer }", "`onwer` is no role"),
        (STEP, "membership: { user: anna, fails: CHAT_CONFLCT }", "Did you mean `CHAT_CONFLICT`?"),
        (API, "partner_api: { agents: { a: { team: x } } }", "no team is called `x`"),
        (API, "partner_api: { agents: { a: { script: x.yaml } } }", "there is no file `x.yaml`"),
        (
            API,
            f"{API}\nexpect: [ {{ job.q1.outcome: no_change }} ]",
            "`job.q1.outcome`, due one of `run.<label>.status",
        ),
        (API, f"{API}\nexpect: [ {{ run.r1.status: failed }} ]", "no step makes a run `r1`"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    told = wrong(tmp_path, old, new)
    assert any(sentence in error for error in told), told


@pytest.mark.req("PRIV-022")
@pytest.mark.parametrize(
    ("members", "what"),
    [
        ("headers: { Authorization: 'Bearer abc' }", "the header `Authorization`"),
        ("headers: { authorization: abc }", "the header `authorization`"),
        ("headers: { X-Store-Context-Grant: abc }", "the header `X-Store-Context-Grant`"),
        ("headers: { X-Other: 'bearer abc' }", "the header `X-Other`"),
        ('body: \'{"grant": "tg1.abc"}\'', "`body`"),
    ],
)
def test_a_secret_is_named_and_never_written(members: str, what: str, tmp_path: Path) -> None:
    (error,) = wrong(tmp_path, STEP, f"call: {{ method: GET, path: /x, status: 401, {members} }}")
    assert f"{what} holds a secret; name one by `key`" in error
    assert "abc" not in error


@pytest.mark.req("TM-054")
@pytest.mark.parametrize("name", TIMINGS)
def test_a_duration_has_bounds_and_is_never_exact(name: str, tmp_path: Path) -> None:
    steps = f"{STEP}\n  - conversation: {{ conversation: c1, user: anna }}\n"
    steps += "  - message: { run: r1, conversation: c1, text: x }\n"
    for due in ("5", "{ count: 5 }"):
        told = wrong(tmp_path, STEP, f"{steps}expect: [ {{ run.r1.{name}: {due} }} ]")
        assert any("a mapping of min and max: a duration is never exact" in error for error in told), told
    text = SHORT_PARTNER.replace(STEP, f"{steps}expect: [ {{ run.r1.{name}: {{ min: 1, max: 5 }} }} ]")
    assert load(partner_project(tmp_path), "short", text).expect[0].due == {"min": 1, "max": 5}


@pytest.mark.req("PA-028")
def test_no_scenario_counts_on_invites_or_a_life_beyond_the_chat() -> None:
    """Neither in its steps, for which there is no word, nor in what it promises."""
    beyond = re.compile(r"invit|lifecycle|provision|AGNT2", re.IGNORECASE)
    found = {str(file): beyond.findall(file.read_text("utf-8")) for file in PARTNER_FILES}
    allowed = {str(FOLDER / "partner" / "wrong-keys.yaml"): ["provision"]}
    assert {file: words for file, words in found.items() if words} == allowed
    assert not [word for word in PartnerStepReader(Reading.__new__(Reading), (), ()).readers if beyond.search(word)]
