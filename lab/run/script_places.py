"""Reading the places of a run's texts from the scripts it named and the journal it left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from lab.agent2.beats import EmitLine, LineType
from lab.agent2.script import Script, load_script
from lab.errors import UsageError
from lab.journal.events import Agent2Line, JobAssigned, digest
from lab.journal.writer import Entry
from lab.run.identity import PROMPT_CANARY
from lab.run.places import Places
from lab.run.world import ANSWER_CANARY_CHARACTERS
from lab.scenario.loader import project_root
from lab.scenario.model import AssignStep, Scenario


def read_places(entries: Sequence[Entry], scenario: Scenario) -> Places:
    """The places of all texts of a run. A script that cannot be read has none: that is said elsewhere."""
    scripts = {}
    for agent2 in scenario.agent2s.values():
        for kind, path in agent2.scripts.items():
            try:
                scripts[agent2.name, kind] = load_script(path)
            except UsageError:
                continue
    return places_of(entries, scenario, scripts, str(project_root(scenario.file)))


def places_of(
    entries: Sequence[Entry], scenario: Scenario, scripts: Mapping[tuple[str, str], Script], root: str = ""
) -> Places:
    """All that is known of a run. `scripts` are by agent2 and job kind; places below the folder `root` are short."""

    def short(place: str) -> str:
        return place.removeprefix(f"{root}/") if root else place

    texts: dict[str, str] = {}
    canaries: dict[str, str] = {}
    for (agent2, kind), script in scripts.items():
        for name, place in script.canaries.items():
            canaries.setdefault(name, short(f"{place.file}:{place.line}"))
        for sha256, place_of_text in _texts_of(script):
            texts.setdefault(sha256, short(place_of_text))
        for number, line in enumerate(_answers(script)):
            canaries[f"answer.{agent2}.{kind}.{number}"] = short(line.source)
    inputs, lines = _told_by_journal(entries, scenario, texts, short)
    if len(inputs) == 1:
        canaries[PROMPT_CANARY] = next(iter(inputs.values()))
    return Places(texts, canaries, inputs, lines)


def _told_by_journal(
    entries: Sequence[Entry], scenario: Scenario, texts: dict[str, str], short: Callable[[str], str]
) -> tuple[dict[str, str], dict[str, list[Agent2Line]]]:
    """What was said in the run itself is surer than what a script might say, and knows the canaries."""
    written = {step.job: step.line for step in scenario.steps if isinstance(step, AssignStep)}
    inputs: dict[str, str] = {}
    lines: dict[str, list[Agent2Line]] = {}
    for event in (entry.event for entry in entries):
        if isinstance(event, Agent2Line) and event.source:
            if event.chars:
                lines.setdefault(event.job_id, []).append(event)
            texts[event.sha256] = short(event.source)
            if event.text is not None:
                texts[event.text["sha256"]] = short(event.source)
        elif isinstance(event, JobAssigned) and event.label in written:
            place = f"the input of {event.label}, {scenario.file}:{written[event.label]}"
            inputs[event.job_id] = place
            for told in (*event.inputs, event.user_turn, event.prompt):
                if told is not None:
                    texts[told["sha256"]] = place
    return inputs, lines


def _texts_of(script: Script) -> Iterator[tuple[str, str]]:
    """The digests of a script's lines, of the texts in them, and of all of its text events joined."""
    spoken: list[EmitLine] = []
    for beat in script.beats:
        line = beat.action
        # A line with a canary is another one in every run; the journal knows it.
        if isinstance(line, EmitLine) and not line.canaries:
            yield digest("", line.encoded())["sha256"], line.source
            yield from ((digest("", text)["sha256"], line.source) for text in _members(line))
            spoken += [line] if line.type is LineType.TEXT else []
    if len(spoken) > 1:
        file = spoken[0].source.rpartition(":")[0]
        joined = digest("", "".join(text for line in spoken for text in _members(line)))
        yield joined["sha256"], f"the text events of {file}, joined"


def _members(line: EmitLine) -> list[str]:
    return [value for name, value in line.members if name == "text" and isinstance(value, str) and value]


def _answers(script: Script) -> list[EmitLine]:
    lines = [beat.action for beat in script.beats if isinstance(beat.action, EmitLine)]
    return [
        line
        for line in lines
        if line.type is LineType.ANSWER
        and not line.canaries
        and any(len(text) >= ANSWER_CANARY_CHARACTERS for text in _members(line))
    ]
