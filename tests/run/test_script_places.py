"""Where the texts of a run are written."""

from __future__ import annotations

from pathlib import Path

from lab.agent2.script import parse_script
from lab.journal.events import Agent2Line, JobAssigned, digest
from lab.run.places import Places
from lab.run.script_places import places_of, read_places
from lab.scenario.model import Agent2Spec, AssignStep
from tests.run.made import entries, scenario

SCRIPT = """\
script: said
about: Something is said
steps:
  - text: "first"
  - text: "second"
  - text: "key {canary:key}"
  - answer: "short"
  - answer: "an answer that is long enough to be known again"
  - result: { outcome: no_change }
"""
ASSIGN = AssignStep(9, None, "q1", "chat", ("why",))


def known(*events: object, root: str = "") -> Places:
    script = parse_script(SCRIPT, "/p/fixtures/said.yaml", "fixtures/said.yaml")
    return places_of(entries(*events), scenario((ASSIGN,)), {("agent2", "chat"): script}, root)  # type: ignore[arg-type]


def place(places: Places, text: str) -> str:
    return places.of(digest("", text))


def test_the_lines_of_a_script() -> None:
    """As they stand in the stream, their texts alone, and the texts joined."""
    places = known()
    assert place(places, '{"type":"text","text":"second"}') == "fixtures/said.yaml:5"
    assert place(places, "second") == "fixtures/said.yaml:5"
    assert place(places, "firstsecond") == "the text events of fixtures/said.yaml, joined"
    assert place(places, "key {canary:key}") == ""
    assert place(places, "never said") == ""


def test_canaries_and_answers() -> None:
    """Answers are counted as those that a run knows again: the long ones."""
    places = known(root="/p")
    assert places.canaries == {"key": "fixtures/said.yaml:6", "answer.agent2.chat.0": "fixtures/said.yaml:8"}


def test_what_was_said_in_the_run() -> None:
    """A line with a canary is known from the journal; an empty one has no position."""
    line = Agent2Line("j", 0, "0" * 64, 9, "/p/more/x.yaml:3", text=digest("answer", "with the key"))
    places = known(line, Agent2Line("j", 1, "1" * 64, 0, "/p/more/x.yaml:4"), root="/p")
    assert places.of({"sha256": "0" * 64}) == place(places, "with the key") == "more/x.yaml:3"
    assert places.lines == {"j": [line]}


def test_the_inputs_of_a_job() -> None:
    """By the line of its step; a lone one is the place of the prompt's canary too."""
    assigned = JobAssigned("j", "q1", "chat", "local_agent", (digest("input", "why"),), None, digest("prompt", "why?"))
    places = known(assigned)
    due = "the input of q1, scenarios/made.yaml:9"
    assert places.inputs == {"j": due}
    assert place(places, "why") == place(places, "why?") == places.canaries["prompt"] == due
    other = JobAssigned("k", "q1", "chat", "local_agent")
    assert "prompt" not in known(assigned, other).canaries
    assert known(JobAssigned("j", "unknown", "chat", "local_agent")).inputs == {}


def test_the_scripts_of_a_scenario_are_read(tmp_path: Path) -> None:
    """One that cannot be read has no places, and is no error here."""
    (tmp_path / "fixtures").mkdir()
    path = tmp_path / "said.yaml"
    path.write_text(SCRIPT, "utf-8")
    spec = Agent2Spec("agent2", ("chat", "fix"), {"chat": path, "fix": tmp_path / "none.yaml"})
    made = scenario((ASSIGN,), agent2s={"agent2": spec}, file=tmp_path / "a.yaml")
    places = read_places([], made)
    assert place(places, "first") == "said.yaml:4"
