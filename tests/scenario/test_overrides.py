"""Values that `--set` puts into a scenario."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.errors import ScenarioErrors, UsageError
from lab.scenario.loader import load_scenario, resolved_yaml
from lab.scenario.model import AssignStep, StreamStep
from tests.scenario.texts import LAWS, SHORT, load

TEXT = SHORT + (
    "  - assign: { job: q1, kind: chat, input: hello }\n"
    "  - stream: { job: q1, within: 3s }\n"
    "expect:\n  - job.q1.runs: 1\n"
)


def test_members_that_are_there_and_that_are_not(tmp_path: Path) -> None:
    scenario = load(
        tmp_path,
        "short",
        TEXT,
        gateway__tenant_mode="hosted",
        gateway__limits__ackTimeoutMs="70",
        local_agent__use="attach",
        local_agent__settings__audit="true",
        deadline="30s",
        seed="5",
        steps__2__stream__within="5s",
        steps__1__assign__llm="null",
        steps__1__assign__options__deep="true",
        tags="[a, b]",
    )
    assert (scenario.deadline, scenario.seed, scenario.tags) == (30.0, 5, ("a", "b"))
    assert scenario.gateways["gateway"].tenant_mode == "hosted"
    assert scenario.gateways["gateway"].limits == {"ackTimeoutMs": 70}
    assert scenario.local_agents["local_agent"].use == "attach"
    assert scenario.local_agents["local_agent"].settings == {"audit": True}
    assign, stream = scenario.steps[1:]
    assert isinstance(assign, AssignStep)
    assert (assign.llm, assign.options) == (None, {"deep": True})
    assert isinstance(stream, StreamStep)
    assert stream.within == 5.0


def test_a_name_with_dots(tmp_path: Path) -> None:
    file = tmp_path / "short.yaml"
    file.write_text(TEXT, "utf-8")
    overrides = {"expect.0.job.q1.runs": "2"}
    assert load_scenario(file, known_laws=LAWS, overrides=overrides).expect[0].due == 2


def test_texts_are_taken_as_they_stand(tmp_path: Path) -> None:
    scenario = load(tmp_path, "short", TEXT, gateway__revision="2.2", local_agent__use="node 'a b' [c]: d")
    assert scenario.gateways["gateway"].revision == "2.2"
    assert scenario.local_agents["local_agent"].use == "node 'a b' [c]: d"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (
            "gatway.signature",
            "off",
            "--set gatway.signature: a scenario has no member `gatway`. Did you mean `gateway`?",
        ),
        (
            "gateway.signatur",
            "off",
            "--set gateway.signatur: `gateway` has no member `signatur`. Did you mean `gateway.signature`?",
        ),
        (
            "steps.1.assign.xyzzy",
            "1",
            "--set steps.1.assign.xyzzy: `steps[1].assign` has no member `xyzzy`. It has `job`, `kind`, `input`, "
            "`inputs`, `to`, `options`, `llm`, `incident`, `fails`, `within`.",
        ),
        ("steps.3.idle", "1s", "--set steps.3.idle: `steps` has no entry `3`; it has 0 to 2."),
        ("steps.-1.idle", "1s", "--set steps.-1.idle: `steps` has no entry `-1`; it has 0 to 2."),
        ("deadline.max", "1s", "--set deadline.max: `deadline` has no members, so no `max`."),
        ("seed.x", "1", "--set seed.x: there is no `seed` to set `x` in."),
        ("gateways.a.signature", "off", "--set gateways.a.signature: `gateways` has no member `a`. It has none."),
        ("", "1", "--set : a scenario has no member ``. It has "),
        (
            "tags",
            "[a",
            "--set tags:1:3: not valid YAML: expected ',' or ']', but got '<stream end>' (while parsing a flow",
        ),
        ("tags", "{a: 1, a: 2}", "--set tags:1:8: a: `a` stands here twice; the first is in line 1."),
        ("about", "x" * 5000, "--set about: the value is longer than 4096 characters."),
    ],
)
def test_unknown_paths_and_unreadable_values(tmp_path: Path, path: str, value: str, message: str) -> None:
    file = tmp_path / "short.yaml"
    file.write_text(TEXT.replace("steps:", "deadline: 20s\nsteps:"), "utf-8")
    with pytest.raises(UsageError) as caught:
        load_scenario(file, known_laws=LAWS, overrides={path: value})
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_wrong_value_is_told_with_its_path_after_the_errors_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(ScenarioErrors) as caught:
        load(tmp_path, "short", TEXT + "sed: 1\n", gateway__signature="of")
    assert [str(error).partition("known here")[0] for error in caught.value.errors] == [
        f"{tmp_path / 'short.yaml'}:9:1: sed: no member `sed` is ",
        "--set gateway.signature:1:1: gateway.signature: seen `of`, due one of `enforce`, `off`. Did you mean `off`?",
    ]


def test_resolved_text_quotes_what_would_be_read_as_something_else(tmp_path: Path) -> None:
    file = tmp_path / "short.yaml"
    file.write_text(TEXT, "utf-8")
    text = resolved_yaml(file, {"gateway.signature": "off", "gateway.revision": "2.2", "steps.1.assign.input": "1e3"})
    assert "  signature: 'off'\n" in text
    assert '  revision: "2.2"\n' in text
    assert '    input: "1e3"\n' in text
