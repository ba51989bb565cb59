"""A finding as a scenario file: the base scenario's participants, and the steps and faults that failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lab.durations import parse_duration
from lab.explore.explored import explored
from lab.explore.plan import Plan
from lab.faults.plan import FAULT_KINDS, Acts, Fault, FrameAnchor
from lab.faults.specs import ToxicSpec
from lab.scenario.loader import as_text
from lab.scenario.model import FaultStep, IdleStep, Scenario, SessionStep, StreamStep, WaitStep
from lab.scenario.step import Step
from lab.scenario.yaml_places import parse_untrusted, plain

HEAD = (
    *("about", "tags", "gateway", "gateways", "agent2", "agent2s", "local_agent", "local_agents", "links", "requires"),
    *("partner_api", "store", "issuer"),
)
"""Members of a scenario that a finding has as they are."""


def finding_yaml(source: str, scenario: Scenario, plan: Plan, name: str, seed: int, comment: str) -> str:
    """The text of a scenario `name` that fails as `plan` did. `source` is the base scenario's text."""
    base: Any = plain(parse_untrusted(source, str(scenario.file))[0])
    whole = explored(scenario, plan)
    tree: dict[str, Any] = {"scenario": name, "seed": seed, "deadline": _duration(whole.deadline), "patient": True}
    tree |= {key: base[key] for key in HEAD if key in base}
    written = list(zip(map(_unhurried, scenario.steps), base["steps"], strict=True))
    tree["steps"] = [_step(step, written, partner=scenario.partner is not None) for step in whole.steps]
    if whole.expect:
        kept = {one.path for one in whole.expect}
        tree["expect"] = [one for one in base["expect"] if set(one) <= kept]
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    return "\n".join([*lines, as_text(tree)])


def _step(step: Step, written: Sequence[tuple[Step, Any]], *, partner: bool) -> dict[str, Any]:
    """A step as it is written: as in the base scenario, but for its deadline, where it does not differ from there."""
    match step:
        case FaultStep():
            return {"fault": fault_tree(step.fault, partner=partner)}
        case WaitStep():
            return {"wait": {"for": f"{step.subject}.{step.condition}"}}
        case StreamStep():
            return {"stream": {"job": step.job, "until": "done" if step.events is None else {"events": step.events}}}
        case SessionStep():
            return {"session": {"job": step.job}}
        case IdleStep():
            return {"idle": _duration(step.seconds)}
        case _:
            base = next(text for one, text in written if one == _unhurried(step))
            kind, body = next(iter(base.items()))
            return {kind: {k: v for k, v in body.items() if k != "within"} if isinstance(body, dict) else body}


def _unhurried(step: Step) -> Step:
    return replace(step, within=None)


def fault_tree(fault: Fault, *, partner: bool = False) -> dict[str, Any]:
    """A fault as the body of a `fault` step; what the loader makes of it is the fault again, except for its line.

    `partner` says that it is of the partner leg.
    """
    body: dict[str, Any] = {}
    acts = FAULT_KINDS[fault.kind].acts
    if acts is Acts.FRAME and fault.anchor is not None:
        body |= _anchor(fault.anchor) | {"do": fault.kind}
        if fault.times is None:
            body["nth"] = "every"
        elif fault.times > 1:
            body["times"] = fault.times
    elif acts is Acts.LINK:
        body["link"] = fault.link
        body |= _on_link(fault)
        if fault.anchor is not None:
            body["after"] = _anchor(fault.anchor)
    elif acts is Acts.SERVICE:
        body |= {"partner" if partner else "agent2": fault.service, fault.kind: True}
    else:
        body |= {"local_agent": fault.process, fault.kind: True}
    if fault.seconds is not None:
        body["for"] = _duration(fault.seconds)
    return body | {"id": fault.id}


def _on_link(fault: Fault) -> dict[str, Any]:
    """What happens to the link, and what ends it beside its time."""
    if fault.kind == "toxic":
        toxics = [_toxic(toxic) for toxic in fault.toxics]
        body: dict[str, Any] = toxics[0] if len(toxics) == 1 else {"toxics": toxics}
    elif fault.kind == "weather":
        body = {"weather": fault.weather}
    else:
        body = {fault.kind: _duration(fault.delay) if fault.kind == "delay" else fault.moved_to or True}
    if fault.until is not None:
        body["until"] = _anchor(fault.until)
    if fault.every is not None:
        body["every"] = _duration(fault.every)
    return body


def _toxic(toxic: ToxicSpec) -> dict[str, Any]:
    body: dict[str, Any] = {"toxic": toxic.type, "stream": toxic.stream}
    if toxic.attributes:
        body["attributes"] = dict(toxic.attributes)
    return body if toxic.toxicity == ToxicSpec.toxicity else body | {"toxicity": toxic.toxicity}


def _anchor(anchor: FrameAnchor) -> dict[str, Any]:
    body: dict[str, Any] = {"frame": anchor.type, "from": anchor.sender}
    narrowed = {"of": anchor.of, "content": anchor.content, "chunk": anchor.chunk}
    body |= {name: value for name, value in narrowed.items() if value is not None}
    if anchor.nth > 1:
        body["nth"] = anchor.nth
    return body


def _duration(seconds: float) -> str:
    """The duration in the unit in which it reads best, of those that give the same number again."""
    texts = [f"{_decimal(seconds)}s", f"{_decimal(seconds * 1000)}ms"]
    if seconds < 1:
        texts.reverse()
    return next((text for text in texts if parse_duration(text) == seconds), texts[0])


def _decimal(number: float) -> str:
    return f"{number:.6f}".rstrip("0").rstrip(".")
