"""Toxics and weathers in scenarios: what they become, and what is said of those that are wrong."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from lab.errors import ScenarioErrors
from lab.faults.plan import Fault, FrameAnchor
from lab.faults.specs import STREAMS, ToxicSpec
from lab.faults.toxics import KINDS
from lab.faults.weather import Phase
from lab.scenario.model import FaultStep
from lab.scenario.shape import scenario_schema
from tests.scenario.texts import ROOT, load

STORMY = """\
scenario: stormy
about: A link with everything on it
links: { g: { to: gateway }, agent2: {} }
steps:
  - fault: { link: g, toxic: latency, attributes: { latency: 9, jitter: 5 }, stream: upstream, toxicity: 0.5, for: 5s }
  - fault: { link: g, toxics: [{ toxic: bandwidth, attributes: { rate: 0 } }, { toxic: timeout }], for: 2s, every: 9s }
  - fault: { link: g, weather: rain, until: { frame: job.result, from: local_agent, nth: 2 } }
  - fault: { link: g, toxic: black_hole, after: { frame: job.assign, from: gateway }, id: hole }
"""
RAIN = """\
about: Now and then nothing passes
phases:
  - { for: 1s, toxics: [{ toxic: bandwidth, attributes: { rate: 0 } }] }
  - { for: 3s }
"""


def with_weather(folder: Path, text: str = RAIN) -> Path:
    """A project with the weather `rain`."""
    file = folder / "fixtures" / "weather" / "rain.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    return folder


def test_toxics_of_a_scenario(tmp_path: Path) -> None:
    steps = load(with_weather(tmp_path), "stormy", STORMY).steps
    stalled = ToxicSpec("bandwidth", attributes={"rate": 0})
    latency = ToxicSpec("latency", None, "upstream", 0.5, {"latency": 9, "jitter": 5})
    assert [step.fault for step in steps if isinstance(step, FaultStep)] == [
        Fault("toxic-1", "toxic", "g", seconds=5, line=5, toxics=(latency,)),
        Fault("toxic-2", "toxic", "g", seconds=2, line=6, toxics=(stalled, ToxicSpec("timeout")), every=9),
        Fault(
            "weather-1",
            "weather",
            "g",
            line=7,
            weather="rain",
            phases=(Phase((stalled,), 1), Phase((), 3)),
            until=FrameAnchor("job.result", "local_agent", 2),
        ),
        Fault(
            "hole",
            "toxic",
            "g",
            anchor=FrameAnchor("job.assign", "gateway"),
            line=8,
            toxics=(ToxicSpec("black_hole"),),
        ),
    ]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("toxic: latncy", "7:36: steps[0].fault.toxic: seen `latncy`"),
        (
            "toxic: latency, attributes: { rate: 5 }",
            "steps[0].fault.attributes.rate: `latency` has no attribute `rate`",
        ),
        ("toxic: latency, attributes: { latncy: 5 }", "no member `latncy` is known here"),
        (
            "toxic: latency, attributes: { latency: 1.5 }",
            "7:68: steps[0].fault.attributes.latency: seen the number 1.5",
        ),
        ("toxic: slicer", "7:12: steps[0].fault: slicer cannot have average_size 0"),
        (
            "toxic: slicer, attributes: { average_size: 5, size_variation: 9 }",
            "7:91: steps[0].fault.attributes.size_var",
        ),
        ("toxic: bandwidth, attributes: { rate: -1 }", "7:67: steps[0].fault.attributes.rate: bandwidth cannot have"),
        ("toxic: black_hole, stream: sideways", "steps[0].fault.stream: seen `sideways`"),
        ("toxic: black_hole, toxicity: 2", "steps[0].fault.toxicity: seen the number 2, due a number from 0 to 1"),
        ("toxic: noop", "7:12: steps[0].fault: `noop` changes nothing, so the fault can never fire."),
        ("toxic: latency", "7:12: steps[0].fault: `latency` with latency 0 and jitter 0 changes nothing"),
        (
            "toxic: latency, attributes: { latency: -5, jitter: 5 }",
            "steps[0].fault.attributes: `latency` with latency -5 and jitter 5 changes nothing",
        ),
        ("toxic: slow_connect, attributes: { delay: 0 }", "`slow_connect` with delay 0 changes nothing"),
        ("toxic: slow_close", "`slow_close` with delay 0 changes nothing"),
        ("toxic: idle_close", "`idle_close` with timeout 0 changes nothing"),
        ("toxic: packet_loss, attributes: { correlation: 1 }", "`packet_loss` with loss_rate 0.0 and correlation"),
        ("toxic: black_hole, toxicity: 0", "7:58: steps[0].fault.toxicity: it is 0, so the toxic strikes no"),
        ("toxic: accept_then_drop, stream: upstream", "7:62: steps[0].fault.stream: `accept_then_drop` acts before a"),
        ("weather: ../chat/x", "there is no weather `../chat/x` in fixtures/weather/; there are `rain`."),
        ("weather: ../weather/rain", "there is no weather `../weather/rain` in fixtures/weather/; there are `rain`."),
        ("toxics: []", "due are 1 to 16 entries"),
        ("toxics: [{ toxic: black_hole }], stream: upstream", "`stream` says something of one `toxic`"),
        ("toxic: black_hole, weather: rain", "`toxic` and `weather` stand here together"),
        ("toxic: black_hole, cut: true", "no member `cut` is known here"),
        ("weather: rian", "there is no weather `rian` in fixtures/weather/; there are `rain`. Did you mean `rain`?"),
        ("weather: rain, for: 1s, every: 5s", "a weather has a schedule of its own"),
        ("toxic: black_hole, every: 5s", "`for` is missing beside it"),
        ("toxic: black_hole, for: 5s, every: 5s", "it is not shorter than `every`"),
        ("toxic: black_hole, for: 5s, until: { frame: ack, from: gateway }", "`for` and `until` stand here together"),
        ("toxic: black_hole, until: { frame: job.assign, from: local_agent }", "is never sent by `local_agent`"),
    ],
)
def test_what_is_wrong_is_told_at_its_place(tmp_path: Path, fault: str, said: str) -> None:
    text = f"scenario: wrong\nabout: A wrong fault\n\n\n\nsteps:\n  - fault: {{ link: gateway, {fault} }}\n"
    with pytest.raises(ScenarioErrors) as caught:
        load(with_weather(tmp_path), "wrong", text)
    assert said in str(caught.value), caught.value
    assert len(caught.value.errors) == 1


@pytest.mark.parametrize(
    ("weather", "said"),
    [
        ("about: Rain\n", "rain.yaml:1:1: one of `toxics`, `phases` is missing"),
        ("about: Rain\ntoxics: [{ toxic: latncy }]\n", "rain.yaml:2:19: toxics[0].toxic: seen `latncy`"),
        ("about: Rain\nphases: [{ toxics: [{ toxic: black_hole }] }, { for: 1s }]\n", "phases[0]: `for` is missing"),
        ("about: Rain\ntoxics: [{ toxic: slicer }]\n", "rain.yaml:2:10: toxics[0]: slicer cannot have"),
        ("about: Rain\ntoxics: [{ toxic: latency }]\n", "rain.yaml:2:10: toxics[0]: `latency` with latency 0"),
        ("about: [", "rain.yaml:"),
        ("about: Rain\nabout: Sun\ntoxics: [{ toxic: black_hole }]\n", "rain.yaml:2:1"),
    ],
)
def test_a_weather_that_is_wrong_is_told_at_its_own_place(tmp_path: Path, weather: str, said: str) -> None:
    text = "scenario: wrong\nabout: A wrong weather\nsteps:\n  - fault: { link: gateway, weather: rain }\n"
    with pytest.raises(ScenarioErrors) as caught:
        load(with_weather(tmp_path, weather), "wrong", text)
    assert said in str(caught.value), caught.value


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.drawn])
def test_what_is_drawn_changes_something(kind: str) -> None:
    assert not any(attributes.is_idle for attributes in KINDS[kind].drawn)


def test_the_schema_knows_the_toxics_that_there_are() -> None:
    """Every kind with its attributes and their types, and nothing else."""
    defs: Any = scenario_schema()["$defs"]
    assert tuple(defs["toxicType"]["enum"]) == tuple(KINDS)
    assert tuple(reversed(defs["toxicStream"]["enum"])) == tuple(reversed(STREAMS))
    words = {int: "integer", float: "number", bool: "boolean"}
    types: dict[str, str] = {}
    owners: dict[str, list[str]] = {}
    for kind in KINDS.values():
        for field in dataclasses.fields(kind.attributes):
            type_word = words[type(getattr(kind.attributes, field.name))]
            assert types.setdefault(field.name, type_word) == type_word
            owners.setdefault(field.name, []).append(kind.name)
    listed = defs["toxicAttributes"]["properties"]
    assert {name: facts["type"] for name, facts in listed.items()} == types
    for name, kinds in owners.items():
        assert listed[name]["description"].startswith(f"Of {', '.join(kinds)}: ")


@pytest.mark.parametrize("file", sorted((ROOT / "fixtures" / "weather").glob("*.yaml")), ids=lambda file: file.stem)
def test_each_weather_that_comes_with_the_lab_can_be_had(tmp_path: Path, file: Path) -> None:
    text = "scenario: fine\nabout: A weather\nsteps:\n  - fault: { link: gateway, weather: rain }\n"
    step = load(with_weather(tmp_path, file.read_text("utf-8")), "fine", text).steps[0]
    assert isinstance(step, FaultStep)
    assert step.fault.course
