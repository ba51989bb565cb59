"""A finding as text: what the loader makes of it is the scenario that failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.commands.loading import load
from lab.explore.as_yaml import fault_tree, finding_yaml
from lab.explore.drawing import Targets
from lab.explore.explored import explored
from lab.explore.moments import Moment
from lab.explore.plan import Plan, Planned
from lab.faults.plan import FAULT_KINDS, Acts, Fault, FrameAnchor
from lab.laws import ALL_LAWS
from lab.scenario.loader import as_text, load_scenario, resolved_yaml
from lab.scenario.model import FaultStep, InjectStep, Scenario
from tests.explore.made import drawn, frame_fault, link_fault, plans_of
from tests.scenario.legs import CHAT_FILES
from tests.scenario.test_read_toxics import STORMY, with_weather
from tests.scenario.texts import load as stormy

ROOT = Path(__file__).parents[2]
SCENARIOS = CHAT_FILES
"""The targets below are theirs."""

NAME = "found"


@cache
def base(path: Path) -> Scenario:
    return load(path)


def targets(scenario: Scenario) -> Targets:
    """All that the scenario names, and some frames of each party."""
    moments = [
        moment
        for gateway in scenario.gateways
        for moment in (
            Moment("ready", gateway, None, None, False, 1),
            Moment("job.assign", gateway, None, None, True, 2),
            Moment("ack", gateway, "job.event", None, False, 9),
            Moment("content.request", gateway, None, "job.stream", True, 4),
        )
    ]
    moments += [
        moment
        for agent in scenario.local_agents
        for moment in (
            Moment("job.event", agent, None, None, False, 9),
            Moment("ack", agent, "job.assign", None, False, 2),
            Moment("content.response", agent, None, "chat.session", False, 3),
        )
    ]
    services, agents = tuple(scenario.agent2s), tuple(scenario.local_agents)
    return Targets(tuple(scenario.links), services, agents, tuple(moments), len(scenario.steps))


def written(scenario: Scenario, source: str, plan: Plan, folder: Path) -> Scenario:
    """The finding, as the loader reads it."""
    file = folder / f"{NAME}.yaml"
    file.write_text(finding_yaml(source, scenario, plan, NAME, 5, "Found so.\nAnd so."), "utf-8")
    laws = [law.id for law in ALL_LAWS]
    return load_scenario(file, known_laws=laws, root=ROOT)


def bare(value: Any) -> Any:
    """A part of a scenario without its lines, which a new file cannot have; an injection is named after its place."""
    if isinstance(value, InjectStep):
        value = replace(value, fault=replace(value.fault, id="inject"))
    if is_dataclass(value) and not isinstance(value, type):
        kept = {one.name: bare(getattr(value, one.name)) for one in fields(value)}
        return type(value)(**kept | {name: 0 for name in ("line", "must_judge_line") if name in kept})
    if isinstance(value, tuple):
        return tuple(map(bare, value))
    if isinstance(value, Mapping):
        return {key: bare(one) for key, one in value.items()}
    return value


def check(scenario: Scenario, source: str, plan: Plan, folder: Path) -> None:
    loaded = written(scenario, source, plan, folder)
    due = replace(explored(scenario, plan), name=NAME, file=loaded.file, seed=5)
    assert bare(loaded) == bare(due)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("found")


@pytest.mark.parametrize("path", SCENARIOS, ids=[path.stem for path in SCENARIOS])
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=st.integers(0, 1_000_000))
def test_a_finding_is_the_scenario_that_failed(path: Path, number: int, folder: Path) -> None:
    """But for what a file gives itself: its name, its seed and its lines."""
    scenario = base(path)
    check(scenario, resolved_yaml(path), drawn(number, targets(scenario)), folder)


HARD = """\
scenario: hard
about: Everything that is hard to write
deadline: 1500ms
gateway: { signature: off, protocol_v2: off }
local_agent: { signature: off, use: "on", settings: { audit: true } }
links: { gateway: { delay: 1.5ms }, agent2: {} }
steps: [wait: { for: local_agent.ready, within: 1s }, assign: { job: q1, kind: chat, input: "1e3" },
  assign: { job: q2, kind: chat, inputs: ["off", { repeat: "ä: #", count: 3 }, " \\t\\u2028'"],
    options: { deep: true, tone: "no" }, llm: null, within: 1s },
  fault: { frame: job.event, from: local_agent, nth: every, do: drop },
  fault: { frame: job.event, from: local_agent, nth: 3, times: 2, do: hold, for: 57ms, id: own },
  fault: { link: gateway, cut: true, for: 1.234567s, after: { frame: content.response, from: local_agent, chunk: 2 } },
  fault: { link: agent2, delay: 100.001ms }, fault: { local_agent: local_agent, pause: true, for: 300ms },
  idle: 0.9s, stream: { job: q1, until: { events: 4 } }, session: { job: q1 }, cancel: { job: q2, reason: user },
  wait: { for: fault.own.fired }, result: { job: q2, within: 1s }, approve: { job: q1, decision: deny }]
expect: [job.q1.outcome: no_change, figures.retransmissions: { max: 0 },
  stream.q1.events: { contiguous: true, count: 4 }, session.q1.turns: [{ role: user, contains: "yes" }]]
must_judge: [acks]
"""


@settings(max_examples=40, deadline=None)
@given(number=st.integers(0, 1_000_000))
def test_words_that_look_like_other_values_stay_words(number: int, folder: Path) -> None:
    """And steps that stand in one line stay apart, durations exact."""
    path = folder / "hard.yaml"
    path.write_text(HARD, "utf-8")
    scenario = load_scenario(path, known_laws=["acks"], root=ROOT)
    check(scenario, HARD, drawn(number, targets(scenario)), folder)


def test_a_finding_says_what_it_is_about_in_its_first_lines(folder: Path) -> None:
    path = ROOT / "scenarios" / "fix-job.yaml"
    text = finding_yaml(resolved_yaml(path), base(path), (frame_fault("a"),), NAME, 5, "Found so.\n\nAgain: so")
    assert text.splitlines()[:5] == ["# Found so.", "#", "# Again: so", f"scenario: {NAME}", "seed: 5"]


@pytest.mark.parametrize(
    ("fault", "tree"),
    [
        (link_fault("a", seconds=0.1).fault, {"link": "gateway", "cut": True, "for": "100ms", "id": "a"}),
        (
            Fault("a", "delay", link="gateway", anchor=FrameAnchor("ready", "gateway"), seconds=20.0, delay=0.05),
            {
                "link": "gateway",
                "delay": "50ms",
                "after": {"frame": "ready", "from": "gateway"},
                "for": "20s",
                "id": "a",
            },
        ),
        (
            Fault("a", "move", link="gateway", moved_to="second"),
            {"link": "gateway", "move": "second", "id": "a"},
        ),
        (
            Fault("a", "drop", anchor=FrameAnchor("ack", "gateway", 3, of="job.event"), times=4),
            {
                "frame": "ack",
                "from": "gateway",
                "of": "job.event",
                "nth": 3,
                "do": "drop",
                "times": 4,
                "id": "a",
            },
        ),
        (
            Fault("a", "drop", anchor=FrameAnchor("ack", "gateway"), times=None),
            {"frame": "ack", "from": "gateway", "do": "drop", "nth": "every", "id": "a"},
        ),
        (
            Fault("a", "crash", service="agent2", seconds=2.0),
            {"agent2": "agent2", "crash": True, "for": "2s", "id": "a"},
        ),
        (
            Fault("a", "kill", process="local_agent", seconds=2.0),
            {"local_agent": "local_agent", "kill": True, "for": "2s", "id": "a"},
        ),
    ],
)
def test_a_fault_as_it_is_written(fault: Fault, tree: dict[str, Any]) -> None:
    assert fault_tree(fault) == tree


@given(plans_of(targets(base(SCENARIOS[0]))))
def test_every_fault_that_is_drawn_names_its_kind_and_itself(plan: tuple[Planned, ...]) -> None:
    for planned in plan:
        tree = fault_tree(planned.fault)
        assert tree["id"] == planned.fault.id
        on_frame = FAULT_KINDS[planned.fault.kind].acts is Acts.FRAME
        assert (tree["do"] == planned.fault.kind) if on_frame else (planned.fault.kind in tree)


def test_toxics_and_weathers_are_written_as_they_are_read(tmp_path: Path) -> None:
    """What is drawn has neither a weather nor a frame at its end, so these are tried by themselves."""
    scenario = stormy(with_weather(tmp_path), "stormy", STORMY)
    faults = [step.fault for step in scenario.steps if isinstance(step, FaultStep)]
    tree = {"scenario": NAME, "about": "Once more", "links": {"g": {"to": "gateway"}, "agent2": {}}}
    text = as_text(tree | {"steps": [{"fault": fault_tree(fault)} for fault in faults]})
    again = [step.fault for step in stormy(tmp_path, NAME, text).steps if isinstance(step, FaultStep)]
    assert [replace(fault, line=0) for fault in again] == [replace(fault, line=0) for fault in faults]
