"""The loader as a whole: what becomes of a right scenario, and what each wrong one is told."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.errors import ScenarioErrors, UsageError
from lab.faults.plan import Fault, FrameAnchor
from lab.scenario import model
from lab.scenario.loader import MAX_BYTES, find_scenarios, load_scenario, project_root, resolved_yaml
from lab.scenario.model import (
    Agent2Spec,
    ApproveStep,
    AssignStep,
    CancelStep,
    ContentStep,
    Expectation,
    FaultStep,
    GatewaySpec,
    IdleStep,
    InjectStep,
    LinkSpec,
    LocalAgentSpec,
    ResultStep,
    SessionStep,
    StreamStep,
    WaitStep,
)
from tests.scenario.test_read_toxics import STORMY, with_weather
from tests.scenario.texts import ALL_LAW_IDS, FULL, LAWS, PARTNER_LAW_IDS, ROOT, SHORT, load, project

INVALID = sorted((ROOT / "tests" / "scenarios" / "invalid").glob("*.yaml"))
VALID = sorted(
    file
    for folder in ("scenarios", "tests/scenarios/valid-pass", "tests/scenarios/valid-fail")
    for file in (ROOT / folder).glob("*.yaml")
)


def test_full_scenario(tmp_path: Path) -> None:
    root = project(tmp_path)
    scenario = load(root, "full", FULL)
    assert (scenario.name, scenario.about) == ("full", "Everything that the language can say")
    assert (scenario.seed, scenario.deadline, scenario.file) == (7, 120.0, root / "full.yaml")
    assert (scenario.tags, scenario.requires) == (("one", "two"), ("reference", "job.chat"))
    assert scenario.gateways == {
        "a": GatewaySpec("a", "hybrid", False, "2.2", {"ackTimeoutMs": 500, "heartbeatSeconds": 5}, 8),
        "b": GatewaySpec("b", "client", True, "2.3", {}, 9, False, "a"),
    }
    assert scenario.agent2s == {
        "fast": Agent2Spec("fast", ("chat",), {"chat": root.resolve() / "fixtures" / "agent2" / "answer.yaml"}, 11),
        "slow": Agent2Spec("slow", ("fix", "implement"), {}, 12, 0.05),
    }
    assert scenario.local_agents == {
        "one": LocalAgentSpec("one", "node la.js", "b", "slow", "warn", "2.1", {"audit": True}, 14),
        "two": LocalAgentSpec("two", "reference", "a", "fast", "enforce", "2.3", {}, 15, 90.0),
    }
    assert scenario.links == {"a": LinkSpec("a", "a", None, 0.0, 17), "b": LinkSpec("b", "b", "one", 0.02, 18)}
    assert (scenario.must_judge, scenario.must_judge_line) == (("stream-complete", "job-at-most-once"), 71)


def test_full_steps(tmp_path: Path) -> None:
    steps = load(project(tmp_path), "full", FULL).steps
    page = FrameAnchor("content.response", "one", nth=2, content="job.stream", chunk=1)
    options = {"conversationId": "abc", "deep": True}
    assert steps == (
        WaitStep(20, 10.0, "one", "ready"),
        AssignStep(21, 1.0, "q1", "chat", ("first", "second\n"), "two", options, None, "inc-42", "AGENT_UNSUPPORTED"),
        StreamStep(31, None, "q1", 40),
        StreamStep(32, 0.2, "q1", None),
        FaultStep(33, None, Fault("cut-1", "cut", link="a", seconds=3.0, line=33)),
        FaultStep(34, None, Fault("slow", "delay", link="a", anchor=page, delay=0.2, line=34)),
        FaultStep(39, None, Fault("reset-1", "reset", link="a", line=39)),
        FaultStep(40, None, Fault("heal-1", "heal", link="a", line=40)),
        FaultStep(
            41, None, Fault("late", "hold", anchor=FrameAnchor("ack", "a", 3, "job.event"), seconds=2.0, line=41)
        ),
        FaultStep(42, None, Fault("drop-1", "drop", anchor=FrameAnchor("job.event", "two"), line=42)),
        FaultStep(43, None, Fault("duplicate-1", "duplicate", anchor=FrameAnchor("job.assign", "b"), line=43)),
        WaitStep(44, None, "job.q1", "accepted"),
        WaitStep(45, None, "fault.late", "fired"),
        ResultStep(46, 20.0, "q1"),
        SessionStep(47, 1.0, "q1"),
        CancelStep(48, 2.0, "q1", "policy"),
        ApproveStep(49, 3.0, "q1", "deny"),
        IdleStep(50, None, 2.0),
        FaultStep(51, None, Fault("crash-1", "crash", seconds=1.0, line=51, service="fast")),
        FaultStep(52, None, Fault("move-1", "move", link="a", line=52, moved_to="b")),
        FaultStep(53, None, Fault("drop-2", "drop", anchor=FrameAnchor("job.event", "two"), times=None, line=53)),
        FaultStep(54, None, Fault("tamper-1", "tamper", anchor=FrameAnchor("job.assign", "a"), times=4, line=54)),
        ContentStep(55, 4.0, "q1", "chat.session", 1.0, "rate_limited"),
        InjectStep(56, None, Fault("inject.23", "inject", socket="one", line=56), "one", text="{}"),
        InjectStep(57, None, Fault("inject.24", "inject", socket="one", line=57), "one", junk="binary"),
        FaultStep(58, None, Fault("kill-1", "kill", seconds=2.0, line=58, process="two")),
    )


def test_full_expectations(tmp_path: Path) -> None:
    expect = load(project(tmp_path), "full", FULL).expect
    assert [line.line for line in expect] == list(range(60, 71))
    assert expect[0] == Expectation("job.q1.outcome", "no_change", 60)
    assert [line.due for line in expect[1:]] == [
        None,
        {"min": 1, "max": 3},
        1,
        {"count": 2, "contains": "duplicate"},
        {"contiguous": True, "count": 200},
        5,
        [{"role": "user"}, {"role": "assistant", "contains": "9001"}],
        False,
        {"max": 1},
        {"count": 2, "contains": "4420"},
    ]


def _parts(value: object) -> Iterator[Any]:
    """Every dataclass in a scenario."""
    if is_dataclass(value) and not isinstance(value, type):
        yield value
        for field in fields(value):
            yield from _parts(getattr(value, field.name))
    elif isinstance(value, dict):
        for each in value.values():
            yield from _parts(each)
    elif isinstance(value, tuple):
        for each in value:
            yield from _parts(each)


def test_every_field_of_the_model_is_reached(tmp_path: Path) -> None:
    """Each class of the model is made, and each field with a default gets another value somewhere."""
    reached: set[tuple[str, str]] = set()
    parts = list(_parts(load(project(tmp_path), "full", FULL)))
    parts += _parts(load(with_weather(tmp_path), "stormy", STORMY))
    for part in parts:
        for field in fields(part):
            default = field.default_factory() if field.default_factory is not MISSING else field.default
            if getattr(part, field.name) != (None if default is MISSING else default):
                reached.add((type(part).__name__, field.name))
    classes = {
        each
        for each in vars(model).values()
        if isinstance(each, type) and is_dataclass(each) and each.__module__ == model.__name__
    }
    due = {(each.__name__, field.name) for each in {*classes, Fault, FrameAnchor} for field in fields(each)}
    untimed = {("FaultStep", "within"), ("IdleStep", "within"), ("InjectStep", "within"), ("Scenario", "partner")}
    assert due - reached == untimed


def test_defaults(tmp_path: Path) -> None:
    scenario = load(tmp_path, "short", SHORT)
    assert scenario.seed is None
    assert scenario.deadline == 60.0
    assert scenario.gateways == {"gateway": GatewaySpec("gateway", line=1)}
    assert scenario.agent2s == {"agent2": Agent2Spec("agent2", line=1)}
    assert scenario.local_agents == {"local_agent": LocalAgentSpec("local_agent", line=1)}
    assert scenario.links == {
        "gateway": LinkSpec("gateway", "gateway", line=1),
        "agent2": LinkSpec("agent2", "agent2", line=1),
    }
    assert (scenario.expect, scenario.must_judge, scenario.must_judge_line) == ((), (), 0)


def test_the_only_participant_of_another_name_is_the_default(tmp_path: Path) -> None:
    text = (
        SHORT + "  - assign: { job: j, kind: fix }\ngateways: { g: {} }\nagent2s: { x: {} }\nlocal_agents: { la: {} }\n"
    )
    scenario = load(tmp_path, "short", text)
    assert scenario.local_agents["la"].gateway == "g"
    assert scenario.local_agents["la"].agent2 == "x"
    assert list(scenario.links) == ["g", "x"]
    assign = scenario.steps[1]
    assert isinstance(assign, AssignStep)
    assert assign.to == "la"


def test_no_links_at_all_can_be_asked_for(tmp_path: Path) -> None:
    assert load(tmp_path, "short", SHORT + "links: {}\n").links == {}


def test_fault_ids_leave_out_those_that_are_given(tmp_path: Path) -> None:
    cuts = [f"  - fault: {{ link: gateway, cut: true{name} }}\n" for name in ("", ", id: cut-2", "")]
    steps = load(tmp_path, "short", SHORT + "".join(cuts)).steps[1:]
    assert [step.fault.id for step in steps if isinstance(step, FaultStep)] == ["cut-1", "cut-2", "cut-3"]


@pytest.mark.parametrize("file", VALID, ids=lambda file: str(file.relative_to(ROOT)))
def test_valid_scenarios_load(file: Path) -> None:
    scenario = load_scenario(file, known_laws=ALL_LAW_IDS, known_partner_laws=PARTNER_LAW_IDS)
    assert scenario.name == file.stem


@pytest.mark.parametrize("file", INVALID, ids=lambda file: str(file.stem))
def test_wrong_scenarios_are_told_all_that_is_wrong(file: Path) -> None:
    """Each `# due:` line of the file is one error: line, column, path, message, nearest word, in file order."""
    due = [line.removeprefix("# due: ") for line in file.read_text("utf-8").splitlines() if line.startswith("# due: ")]
    assert due
    with pytest.raises(UsageError) as caught:
        load_scenario(file, known_laws=LAWS)
    assert [line.removeprefix(f"{file}:") for line in str(caught.value).splitlines()] == due


def test_no_more_than_fifty_errors_are_told(tmp_path: Path) -> None:
    with pytest.raises(ScenarioErrors) as caught:
        load(tmp_path, "short", SHORT + "".join(f"x{number}: 1\n" for number in range(53)))
    assert len(caught.value.errors) == 51
    assert str(caught.value.errors[-1]) == f"{tmp_path / 'short.yaml'}:55:1: and 3 more from here on."


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "the file is empty; due is a scenario in YAML."),
        (b" \n\t\n", "the file is empty; due is a scenario in YAML."),
        (b"\xff\xfe\x00", "the file is not UTF-8 text."),
        (b"a: \x00", "the file is binary; due is a scenario in YAML."),
        (b"#" * (MAX_BYTES + 1), "the file is larger than 256 KiB, too large for a scenario."),
    ],
)
def test_unreadable_files(tmp_path: Path, raw: bytes, message: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_bytes(raw)
    with pytest.raises(UsageError) as caught:
        load_scenario(file, known_laws=LAWS)
    assert str(caught.value) == f"{file}: {message}"


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.yaml: there is no such file\.$"):
        load_scenario(tmp_path / "none.yaml", known_laws=LAWS)
    with pytest.raises(UsageError, match=r": this is a folder; due is a scenario file\.$"):
        load_scenario(tmp_path, known_laws=LAWS)
    with pytest.raises(UsageError, match="cannot be read"):
        load_scenario(tmp_path / "a\0b", known_laws=LAWS)


def test_a_largest_file_is_read(tmp_path: Path) -> None:
    padding = "#" * (MAX_BYTES - len(SHORT))
    assert load(tmp_path, "short", SHORT + padding).name == "short"


@pytest.mark.parametrize(
    ("raw", "message"),
    [(b"\xff\n", "the file is not UTF-8 text."), (b"a" * 65_537, "the file is larger than 64 KiB.")],
)
def test_unreadable_inputs(tmp_path: Path, raw: bytes, message: str) -> None:
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "fixtures" / "in.txt").write_bytes(raw)
    with pytest.raises(ScenarioErrors) as caught:
        load(tmp_path, "short", SHORT + "  - assign: { job: j, kind: fix, input: { file: fixtures/in.txt } }\n")
    assert [(error.path, error.message) for error in caught.value.errors] == [("steps[1].assign.input.file", message)]


def test_an_input_that_the_disk_does_not_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Path.read_text

    def refuse(path: Path, encoding: str) -> str:
        if path.name == "in.txt":
            raise OSError(errno.EIO, "Input/output error")
        return read(path, encoding)

    monkeypatch.setattr(Path, "read_text", refuse)
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "fixtures" / "in.txt").write_bytes(b"x")
    with pytest.raises(ScenarioErrors, match=r"the file cannot be read: Input/output error\.$"):
        load(tmp_path, "short", SHORT + "  - assign: { job: j, kind: fix, input: { file: fixtures/in.txt } }\n")


@pytest.mark.parametrize(
    ("repeated", "due"), [('{ repeat: "ab", count: 3 }', "ababab"), ("{ count: 16384, repeat: 😀 }", "😀" * 16384)]
)
def test_an_input_can_be_a_text_many_times(tmp_path: Path, repeated: str, due: str) -> None:
    """Also the largest, by the bytes that the protocol allows."""
    step = load(tmp_path, "short", SHORT + f"  - assign: {{ job: j, kind: fix, inputs: [a, {repeated}] }}\n").steps[1]
    assert isinstance(step, AssignStep)
    assert step.inputs == ("a", due)


@pytest.mark.parametrize("code", ["AGENT_UNSUPPORTED", "frame_too_large"])
def test_an_assign_may_fail_with_either_kind_of_code(tmp_path: Path, code: str) -> None:
    step = load(tmp_path, "short", SHORT + f"  - assign: {{ job: j, kind: fix, fails: {code} }}\n").steps[1]
    assert isinstance(step, AssignStep)
    assert step.fails == code


def test_a_link_in_the_file_system_does_not_lead_out(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / "fixtures").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("x", "utf-8")
    (root / "fixtures" / "in.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(ScenarioErrors, match="leads out of the project"):
        load(root, "short", SHORT + "  - assign: { job: j, kind: fix, input: { file: fixtures/in.txt } }\n")


def test_directions_can_be_given(tmp_path: Path) -> None:
    file = tmp_path / "short.yaml"
    file.write_text(SHORT + "  - fault: { frame: x.y, from: gateway, do: drop }\n", "utf-8")
    assert load_scenario(file, known_laws=LAWS, directions={"x.y": "both"}).steps
    with pytest.raises(ScenarioErrors, match=r"`x\.y` is never sent by `gateway`"):
        load_scenario(file, known_laws=LAWS, directions={"x.y": "la-to-cp"})


def test_figures_can_be_given(tmp_path: Path) -> None:
    file = tmp_path / "short.yaml"
    file.write_text(SHORT + "expect: [{ figures.resume: 1 }]\n", "utf-8")
    assert load_scenario(file, known_laws=LAWS).expect
    with pytest.raises(ScenarioErrors) as caught:
        load_scenario(file, known_laws=LAWS, known_figures=("frames", "resumes"))
    due = "expect[0].figures.resume: a run has no figure `resume`; it has `frames`, `resumes`. Did you mean `resumes`?"
    assert str(caught.value) == f"{file}:5:12: {due}"


def test_project_root(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert project_root(deep / "s.yaml") == deep.resolve()
    (tmp_path / "a" / "fixtures").mkdir()
    (tmp_path / "pyproject.toml").write_text("", "utf-8")
    assert project_root(deep / "s.yaml") == (tmp_path / "a").resolve()
    assert project_root(tmp_path / "s.yaml") == tmp_path.resolve()


def test_the_root_can_be_given(tmp_path: Path) -> None:
    root = project(tmp_path / "elsewhere")
    file = tmp_path / "full.yaml"
    file.write_text(FULL, "utf-8")
    assert (
        load_scenario(file, known_laws=LAWS, root=root).agent2s["fast"].scripts["chat"].is_relative_to(root.resolve())
    )


def test_find_scenarios(tmp_path: Path) -> None:
    for name in (
        "b.yaml",
        "a.yml",
        "sub/c.yaml",
        "profiles/node.yaml",
        "fixtures/x.yaml",
        ".hidden/d.yaml",
        "notes.txt",
        "runs/one/now-7/scenario.yaml",
        "runs/one/now-7/journal.jsonl",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(SHORT, "utf-8")
    (tmp_path / "empty").mkdir()
    found = find_scenarios([tmp_path, tmp_path / "b.yaml", tmp_path / "notes.txt"])
    assert found == [tmp_path / name for name in ("a.yml", "b.yaml", "notes.txt", "sub/c.yaml")]
    for name in ("empty", "fixtures", "profiles", "runs"):
        with pytest.raises(UsageError, match=r"there is no scenario \(\*\.yaml\) in this folder"):
            find_scenarios([tmp_path / name])
    with pytest.raises(UsageError, match="there is no such file or folder"):
        find_scenarios([tmp_path / "none"])


def test_resolved_without_overrides_is_the_file(tmp_path: Path) -> None:
    file = tmp_path / "short.yaml"
    file.write_text(f"# why\n{SHORT}", "utf-8")
    assert resolved_yaml(file) == f"# why\n{SHORT}"


def test_resolved_with_overrides_loads_to_the_same(tmp_path: Path) -> None:
    root = project(tmp_path)
    overrides = {"deadline": "30s", "gateways.b.tenant_mode": "hosted", "steps.1.assign.inputs.0": "off\n1e3"}
    file = root / "full.yaml"
    file.write_text(FULL, "utf-8")
    due = load_scenario(file, known_laws=LAWS, overrides=overrides)
    text = resolved_yaml(file, overrides)
    assert text.startswith(
        "# --set deadline=30s\n# --set gateways.b.tenant_mode=hosted\n# --set steps.1.assign.inputs.0=off 1e3\n"
    )
    again = load(root, "full", text)
    assert _without_lines(again) == _without_lines(due)
    assert again.deadline == 30.0


def _without_lines(scenario: object) -> list[object]:
    return [
        (type(part).__name__, [getattr(part, field.name) for field in fields(part) if _is_plain(part, field.name)])
        for part in _parts(scenario)
    ]


def _is_plain(part: object, name: str) -> bool:
    value = getattr(part, name)
    return "line" not in name and not any(_parts(value))
