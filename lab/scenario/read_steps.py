"""Reads the steps of a scenario, one function a kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lab.faults.plan import FAULT_KINDS, Fault
from lab.scenario.findings import words
from lab.scenario.model import (
    ApproveStep,
    AssignStep,
    CancelStep,
    ContentStep,
    FaultStep,
    IdleStep,
    InjectStep,
    ResultStep,
    SessionStep,
    StreamStep,
    WaitStep,
)
from lab.scenario.names import fault_kind
from lab.scenario.partner_model import PartnerSpec
from lab.scenario.read_frames import read_anchor
from lab.scenario.read_partner_steps import PartnerStepReader
from lab.scenario.read_toxics import read_toxic_fault
from lab.scenario.reading import (
    Reading,
    StepBody,
    duration,
    entries,
    input_text,
    mapping,
    reference,
    text,
    texts,
    whole,
)
from lab.scenario.step import Step
from lab.scenario.yaml_places import ListNode, MapNode, Node, plain

LOCAL_AGENT_CONDITIONS = ("ready", "resumed", "disconnected", "refused", "v1")
JOB_CONDITIONS = ("accepted", "rejected", "running", "ended", "cancelled", "repeated")
FAULT_CONDITIONS = ("fired",)
EVERY = "every"
TOXIC_KINDS = ("toxic", "weather")
CHAT_STEPS = ("assign", "stream", "result", "session", "cancel", "approve", "content", "inject")
PARTNER_STEPS = (
    *("membership", "conversation", "grant", "bind", "context", "recover", "attach", "download", "message", "follow"),
    *("poll", "history", "call", "control", "store"),
)


def read_steps(
    reading: Reading, root: MapNode, directions: Mapping[str, str] | None, partner: PartnerSpec | None = None
) -> tuple[Step, ...]:
    """The steps in order. `directions` are those of the frame types; None takes the contract's.

    `partner` has the participants of a scenario of the partner leg, whose steps are others.
    """
    steps = root.members.get("steps")
    if not isinstance(steps, ListNode):
        return ()
    own = PartnerStepReader(reading, partner.api.teams, texts(root, "requires")).readers if partner else None
    reader = _StepReader(reading, directions, own)
    read = [reader.step(node) for node in steps.items if isinstance(node, MapNode) and node.members]
    return tuple(step for step in read if step is not None)


class _StepReader:
    def __init__(
        self,
        reading: Reading,
        directions: Mapping[str, str] | None,
        partner: Mapping[str, Callable[[StepBody], Step]] | None,
    ) -> None:
        self._reading = reading
        self._directions = directions
        self._leg, other = ("chat", PARTNER_STEPS) if partner is None else ("partner", CHAT_STEPS)
        self._others = frozenset(other)
        self._readers: Mapping[str, Callable[[StepBody], Step]] = {
            "wait": self._wait,
            **(self._chat_readers() if partner is None else partner),
        }

    def _chat_readers(self) -> Mapping[str, Callable[[StepBody], Step]]:
        return {
            "assign": self._assign,
            "stream": self._stream,
            "result": self._result,
            "session": self._session,
            "cancel": self._cancel,
            "approve": self._approve,
            "content": self._content,
            "inject": self._inject,
        }

    def step(self, node: MapNode) -> Step | None:
        """The step at `node`, a mapping with one member: its kind. None for one of the other leg, which is noted."""
        kind, body = next(iter(node.members.items()))
        if kind in self._others:
            due = words(("fault", "idle", *self._readers))
            message = f"`{kind}` is no step of the {self._leg} leg, which this scenario is of; its steps are {due}."
            self._reading.findings.add(node, message, place=node.keys[kind])
            return None
        index = int(node.path[-1])
        line = node.place.line
        if not isinstance(body, MapNode):
            seconds = duration(self._reading.findings, node, kind, most=self._reading.deadline)
            return IdleStep(line, None, seconds or 0.0)
        if kind == "fault":
            return FaultStep(line, None, self._fault(body, line, index))
        return self._readers[kind](StepBody(body, line, index, self._within(body)))

    def _within(self, node: MapNode) -> float | None:
        return duration(self._reading.findings, node, "within", most=self._reading.deadline)

    def _job(self, body: StepBody) -> str:
        job = body.node.members["job"]
        label = str(plain(job))
        check_job(self._reading, job, label, body.index)
        return label

    def _wait(self, body: StepBody) -> Step:
        subject, word = self._condition(body.node.members["for"], body.index)
        return WaitStep(body.line, body.within, subject, word)

    def _condition(self, node: Node, index: int) -> tuple[str, str]:
        """`<subject>.<condition>` of a wait; what it refers to must be declared by an earlier step."""
        findings, names = self._reading.findings, self._reading.names
        written = str(plain(node))
        subject, _, word = written.rpartition(".")
        head, _, rest = subject.partition(".")
        if head == "job" and rest and names.local_agents:
            check_job(self._reading, node, rest, index)
            conditions: tuple[str, ...] = JOB_CONDITIONS
        elif head == "fault" and rest:
            self._check_fault(node, rest, index)
            conditions = FAULT_CONDITIONS
        elif not names.local_agents:
            message = f"seen `{written}`; what the partner leg can wait for is `fault.<id>.fired`."
            findings.add(node, message)
            return subject, word
        else:
            conditions = LOCAL_AGENT_CONDITIONS
            if subject not in names.local_agents:
                among = [f"{name}.{each}" for name in names.local_agents for each in LOCAL_AGENT_CONDITIONS]
                starts = words((*names.local_agents, "job.<label>", "fault.<id>"))
                message = f"seen `{written}`, due a condition of one of {starts}."
                findings.add(node, message, word=written, among=among)
                return subject, word
        if word not in conditions:
            message = f"`{subject}` has no condition `{word}`; it has {words(conditions)}."
            findings.add(node, message, word=word, among=conditions)
        return subject, word

    def _check_fault(self, node: Node, name: str, index: int) -> None:
        faults = self._reading.names.faults
        if name not in faults:
            message = f"no fault has the id `{name}`; there are {words(faults)}."
            self._reading.findings.add(node, message, word=name, among=faults)
        elif faults[name] > index:
            message = f"fault `{name}` is waited for before steps[{faults[name]}] makes it."
            self._reading.findings.add(node, message)

    def _assign(self, body: StepBody) -> Step:
        node = body.node
        label = str(plain(node.members["job"]))
        first = self._reading.names.jobs.get(label, body.index)
        if first != body.index:
            message = f"job `{label}` is assigned twice; steps[{first}] assigns it first."
            self._reading.findings.add(node.members["job"], message)
        options = mapping(node, "options")
        values: dict[str, Any] = {key: plain(value) for key, value in options.members.items()} if options else {}
        written = [node.members["input"]] if "input" in node.members else list(entries(node, "inputs"))
        return AssignStep(
            body.line,
            body.within,
            job=label,
            kind=text(node, "kind") or "",
            inputs=tuple(input_text(self._reading, entry) for entry in written),
            to=reference(self._reading, node, "to", "local agent", self._reading.names.local_agents),
            options=values,
            llm=text(node, "llm") if "llm" in node.members else AssignStep.llm,
            incident=text(node, "incident"),
            fails=text(node, "fails"),
        )

    def _stream(self, body: StepBody) -> Step:
        until = mapping(body.node, "until")
        events = whole(until, "events") if until else None
        return StreamStep(body.line, body.within, self._job(body), events)

    def _result(self, body: StepBody) -> Step:
        return ResultStep(body.line, body.within, self._job(body))

    def _session(self, body: StepBody) -> Step:
        return SessionStep(body.line, body.within, self._job(body))

    def _cancel(self, body: StepBody) -> Step:
        reason = text(body.node, "reason") or CancelStep.reason
        return CancelStep(body.line, body.within, self._job(body), reason)

    def _approve(self, body: StepBody) -> Step:
        return ApproveStep(body.line, body.within, self._job(body), text(body.node, "decision") or "")

    def _content(self, body: StepBody) -> Step:
        pace = duration(self._reading.findings, body.node, "pace", most=self._reading.deadline) or 0.0
        kind = text(body.node, "kind") or ""
        return ContentStep(body.line, body.within, self._job(body), kind, pace, text(body.node, "fails"))

    def _inject(self, body: StepBody) -> Step:
        agents = self._reading.names.local_agents
        to = reference(self._reading, body.node, "to", "local agent", agents)
        # No fault of the scenario can be called so: its names have no dot.
        fault = Fault(f"inject.{body.index}", "inject", socket=to, line=body.line)
        return InjectStep(body.line, None, fault, to, text(body.node, "text"), text(body.node, "junk"))

    def _fault(self, node: MapNode, line: int, index: int) -> Fault:
        reading = self._reading
        kind = fault_kind(node) or ""
        name = reading.names.fault_ids[index]
        if reading.names.faults[name] != index and "id" in node.members:
            message = f"fault `{name}` is there twice; steps[{reading.names.faults[name]}] makes it first."
            reading.findings.add(node.members["id"], message)
        seconds = duration(reading.findings, node, "for", most=reading.deadline)
        self._check_lasts(node, kind)
        after = node if "frame" in node.members else mapping(node, "after")
        link = service = process = None
        self._check_leg_of_fault(node)
        if "partner" in node.members:
            service = text(node, "partner")
        elif "agent2" in node.members and reading.names.agent2s:
            service = reference(reading, node, "agent2", "agent2", reading.names.agent2s)
        elif "local_agent" in node.members and reading.names.local_agents:
            process = reference(reading, node, "local_agent", "local agent", reading.names.local_agents)
        elif "link" in node.members:
            link = reference(reading, node, "link", "link", reading.names.links)
        fault = Fault(
            name,
            kind,
            link=link,
            anchor=read_anchor(reading, after, self._directions) if after else None,
            seconds=seconds,
            delay=duration(reading.findings, node, "delay", most=reading.deadline) or 0.0,
            line=line,
            service=service,
            process=process,
            times=self._times(node),
            moved_to=self._moved_to(node, link),
        )
        return read_toxic_fault(reading, node, fault, self._directions) if kind in TOXIC_KINDS else fault

    def _check_leg_of_fault(self, node: MapNode) -> None:
        """Frames, agent2 and programs are of the chat leg; `partner` is of the other."""
        chat_only = ("frame", "agent2", "local_agent", "after", "until", "move")
        members = chat_only if self._leg == "partner" else ("partner",)
        for member in members:
            if member in node.members:
                message = f"`{member}` is of no fault of the {self._leg} leg, which this scenario is of."
                self._reading.findings.add(node.members[member], message, place=node.keys[member])

    def _times(self, node: MapNode) -> int | None:
        every = text(node, "nth") == EVERY
        if every and "times" in node.members:
            self._reading.findings.add(node.members["times"], "`times` has no meaning beside `nth: every`.")
        return None if every else whole(node, "times") or 1

    def _moved_to(self, node: MapNode, link: str | None) -> str | None:
        """Where `move` leads a link: to another instance of the gateway that it leads to."""
        target = text(node, "move")
        if target is None:
            return None
        roots = self._reading.names.roots
        to = self._reading.names.targets.get(link or "", "")
        instances = [name for name, root in roots.items() if root == roots.get(to) and name != to]
        if target not in instances:
            among = words(instances) if instances else "none"
            message = f"`{target}` is no other instance of `{to}`, where link `{link}` leads; there is {among}."
            self._reading.findings.add(node.members["move"], message, word=target, among=instances)
        return target

    def _check_lasts(self, node: MapNode, kind: str) -> None:
        if kind == "hold" and "for" not in node.members:
            self._reading.findings.add(node, "`for` is missing: how long the frame is held.")
        elif kind == "pause" and "for" not in node.members:
            self._reading.findings.add(node, "`for` is missing: how long the program stands still.")
        elif "for" in node.members and not FAULT_KINDS[kind].lasting:
            lasting = words(name for name, facts in FAULT_KINDS.items() if facts.lasting)
            message = f"`{kind}` happens once; `for` belongs to the kinds that last: {lasting}."
            self._reading.findings.add(node.members["for"], message)


def check_job(reading: Reading, node: Node, label: str, index: int | None) -> None:
    """A job is assigned, and by a step before the one of `index`; None is after all steps."""
    jobs = reading.names.jobs
    if label not in jobs:
        message = f"no step assigns a job `{label}`; there are {words(jobs)}."
        reading.findings.add(node, message, word=label, among=jobs)
    elif index is not None and jobs[label] >= index:
        reading.findings.add(node, f"job `{label}` is used before steps[{jobs[label]}] assigns it.")
