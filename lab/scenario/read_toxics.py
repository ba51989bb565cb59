"""Reads toxics and weathers: of a fault step, and of the files of fixtures/weather/."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.errors import ScenarioError
from lab.faults.plan import Fault
from lab.faults.refusals import BadToxic
from lab.faults.specs import ToxicSpec
from lab.faults.toxics import KINDS
from lab.faults.toxics.attributes import listed_attributes, read_attributes
from lab.faults.weather import Phase, Weather
from lab.scenario.findings import short, words
from lab.scenario.read_frames import read_anchor
from lab.scenario.reading import Reading, duration, entries, mapping, text
from lab.scenario.shape import fitting
from lab.scenario.yaml_places import MapNode, ScalarNode, parse_untrusted, plain

WEATHERS = Path("fixtures", "weather")
"""Where the weathers of a project are, below its root."""

MAX_WEATHER_BYTES = 65_536

TOXICS = "toxics"


def read_toxic_fault(reading: Reading, node: MapNode, fault: Fault, directions: Mapping[str, str] | None) -> Fault:
    """`fault` with what the step at `node` says of toxics and weather, and of when they end."""
    until = mapping(node, "until")
    fault = dataclasses.replace(
        fault,
        until=read_anchor(reading, until, directions) if until else None,
        every=_every(reading, node, fault),
    )
    _check_ends(reading, node)
    if "weather" in node.members:
        weather = _named_weather(reading, node)
        return dataclasses.replace(fault, weather=text(node, "weather"), phases=weather.phases if weather else ())
    toxics = _toxics(reading, node) if TOXICS in node.members else (_toxic(reading, node),)
    return dataclasses.replace(fault, toxics=toxics)


def _check_ends(reading: Reading, node: MapNode) -> None:
    single = [name for name in ("attributes", "stream", "toxicity") if name in node.members]
    if single and "toxic" not in node.members:
        message = f"`{single[0]}` says something of one `toxic`; of several it stands with each."
        reading.findings.add(node.members[single[0]], message)
    if {"for", "until"} <= set(node.members) and "every" not in node.members:
        reading.findings.add(node.members["until"], "`for` and `until` stand here together; due is one of the two.")


def _every(reading: Reading, node: MapNode, fault: Fault) -> float | None:
    every = duration(reading.findings, node, "every", most=reading.deadline)
    if every is None:
        return None
    if "weather" in node.members:
        reading.findings.add(node.members["every"], "a weather has a schedule of its own; `every` belongs to toxics.")
    elif fault.seconds is None:
        reading.findings.add(node.members["every"], "`for` is missing beside it: how long the toxics stand each time.")
    elif fault.seconds >= every:
        reading.findings.add(node.members["for"], "it is not shorter than `every`, so there would be no time between.")
    else:
        return every
    return None


def _toxics(reading: Reading, node: MapNode) -> tuple[ToxicSpec, ...]:
    return tuple(_toxic(reading, entry) for entry in entries(node, TOXICS) if isinstance(entry, MapNode))


def _toxic(reading: Reading, node: MapNode) -> ToxicSpec:
    kind = text(node, "toxic") or ""
    given = mapping(node, "attributes")
    values: dict[str, Any] = {name: plain(value) for name, value in given.members.items()} if given else {}
    _check_attributes(reading, node, given, kind, values)
    _check_stream(reading, node, kind)
    toxicity = _toxicity(node)
    if not toxicity and "toxicity" in node.members:
        message = "it is 0, so the toxic strikes no connection and the fault can never fire; due is more than 0."
        reading.findings.add(node.members["toxicity"], message)
    return ToxicSpec(kind, None, text(node, "stream") or ToxicSpec.stream, toxicity, values)


def _check_stream(reading: Reading, node: MapNode, kind: str) -> None:
    """A door acts before there is a stream; one that is said to be of the other stream is meant otherwise."""
    if KINDS[kind].stage is None and text(node, "stream") not in (None, ToxicSpec.stream):
        message = f"`{kind}` acts before a connection has streams; leave `stream` away."
        reading.findings.add(node.members["stream"], message)


def _toxicity(node: MapNode) -> float:
    member = node.members.get("toxicity")
    value = member.value if isinstance(member, ScalarNode) else None
    return float(value) if isinstance(value, int | float) else ToxicSpec.toxicity


def _check_attributes(
    reading: Reading, node: MapNode, given: MapNode | None, kind: str, values: Mapping[str, Any]
) -> None:
    base = KINDS[kind].attributes
    known = tuple(field.name for field in dataclasses.fields(base))
    strange = [name for name in values if name not in known]
    for name in strange:
        assert given is not None
        message = f"`{kind}` has no attribute `{name}`; it has {words(known)}."
        reading.findings.add(given, message, word=name, among=known, place=given.keys[name], path=(*given.path, name))
    if strange:
        return
    try:
        read = read_attributes(kind, base, values)
    except BadToxic as error:
        at = given.members.get(error.attribute) if given else None
        reading.findings.add(at or given or node, f"{error}.")
        return
    if read.is_idle and not reading.findings.any_in(given or node):
        shown = " and ".join(f"{name} {value}" for name, value in listed_attributes(read).items())
        what = f"`{kind}` with {shown}" if shown else f"`{kind}`"
        reading.findings.add(given or node, f"{what} changes nothing, so the fault can never fire.")


def _named_weather(reading: Reading, node: MapNode) -> Weather | None:
    name = node.members["weather"]
    assert isinstance(name, ScalarNode)
    folder = reading.root / WEATHERS
    known = sorted(path.stem for path in folder.glob("*.yaml"))
    if name.text not in known:
        # Whatever path it might be: only a name in this list is ever opened.
        message = f"there is no weather `{short(name.text)}` in {WEATHERS.as_posix()}/; there are {words(known)}."
        reading.findings.add(name, message, word=name.text, among=known)
        return None
    return _read_weather(reading, name, folder / f"{name.text}.yaml")


def _read_weather(reading: Reading, name: ScalarNode, path: Path) -> Weather | None:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_WEATHER_BYTES + 1)
        source = raw.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reading.findings.add(name, f"the weather's file cannot be read: {getattr(error, 'strerror', 'no UTF-8 text')}.")
        return None
    if len(raw) > MAX_WEATHER_BYTES:
        reading.findings.add(name, f"the weather's file is larger than {MAX_WEATHER_BYTES // 1024} KiB.")
        return None
    try:
        tree, doubles = parse_untrusted(source, str(path))
    except ScenarioError as broken:
        reading.findings.note(broken)
        return None
    for double in doubles:
        reading.findings.note(double)
    node = fitting(tree, "weather", reading.findings)
    if not isinstance(node, MapNode):
        return None
    return Weather(name.text, text(node, "about") or "", tuple(_phases(reading, node)))


def _phases(reading: Reading, node: MapNode) -> list[Phase]:
    phases = [entry for entry in entries(node, "phases") if isinstance(entry, MapNode)]
    if not phases:
        return [Phase(_toxics(reading, node))]
    return [Phase(_toxics(reading, phase), duration(reading.findings, phase, "for")) for phase in phases]
