"""Profiles as files: what they may say, and how faults in them are told."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from lab.errors import ScenarioError, UsageError
from lab.sut.profile import LAB_ENVIRONMENT, find_profile, load_profile, profile_for_command, profile_names
from lab.sut.yaml_file import MAX_BYTES

SHIPPED = Path(__file__).parents[2] / "scenarios" / "profiles"

WHOLE = """\
profile: p
about: All that a profile may say
command: node "src/my server.js" --tenant {tenant_id}
cwd: "{blank:checkout}"
environment:
  FLAG: true
  "{blank:url_variable}": "{gateway_ws_url}"
home: inherit
inherit: [NODE_OPTIONS, NPM_*]
ready: { within: 1m }
stop: { signal: SIGINT, grace: 200ms }
blanks:
  checkout: the checkout
  url_variable: the variable
"""
LEAST = "profile: p\nabout: x\ncommand: [x]\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "p.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_whole_profile_is_read(tmp_path: Path) -> None:
    profile = load_profile(write(tmp_path, WHOLE))
    values = {"tenant_id": "T", "blank:checkout": "C", "blank:url_variable": "URL", "gateway_ws_url": "ws:"}
    assert [part.fill(values) for part in profile.command] == ["node", "src/my server.js", "--tenant", "T"]
    assert profile.cwd.fill(values) == "C"
    assert [(n.fill(values), v.fill(values)) for n, v in profile.environment] == [("FLAG", "true"), ("URL", "ws:")]
    assert profile.inherits_home
    assert profile.inherit == ("NODE_OPTIONS", "NPM_*")
    assert (profile.ready_within, profile.stop_signal, profile.grace) == (60.0, signal.SIGINT, 0.2)
    assert profile.blanks == {"checkout": "the checkout", "url_variable": "the variable"}


def test_the_least_profile_has_defaults(tmp_path: Path) -> None:
    profile = load_profile(write(tmp_path, LEAST))
    assert (profile.ready_within, profile.stop_signal, profile.grace) == (30.0, signal.SIGTERM, 5.0)
    assert (profile.inherits_home, profile.inherit, profile.environment, profile.blanks) == (False, (), (), {})
    assert profile.cwd.fill({}) == "."


@pytest.mark.parametrize(
    ("text", "line", "column", "path", "nearest"),
    [
        (LEAST + "comand: x\n", 4, 1, "comand", "command"),
        (LEAST + "stop: { sginal: SIGINT }\n", 4, 9, "stop.sginal", "signal"),
        (LEAST + "ready: { in: 3s }\n", 4, 10, "ready.in", None),
        (LEAST + "environment:\n  A: 'x{tenant}'\n", 5, 8, "environment.A", "{tenant_id}"),
        (LEAST + 'environment:\n  "{blank:a}": x\n', 5, 4, "environment.{blank:a}", None),
        ("profile: p\nabout: x\ncommand: [x, '{pyton}']\n", 3, 15, "command[1]", "{python}"),
        ("profile: p\nabout: x\ncommand: x {pyton}\n", 3, 12, "command", "{python}"),
        ("profile: p\nabout: x\ncommand: [{python}]\n", 3, 11, "command[0]", None),
        ("profile: p\nabout: x\ncommand: []\n", 3, 10, "command", None),
        ("profile: p\nabout: x\ncommand: 'a \"b'\n", 3, 10, "command", None),
        ("profile: q\nabout: x\ncommand: x\n", 1, 10, "profile", None),
        ("profile: p\nabout: x\n", 1, 1, "", None),
        (LEAST + "home: temporry\n", 4, 7, "home", "temporary"),
        (LEAST + "state: /tmp/state\n", 4, 8, "state", None),
        (LEAST + "state: '{home}'\n", 4, 8, "state", None),
        (LEAST + "state: '{home}/../other'\n", 4, 8, "state", None),
        (LEAST + "home: inherit\nstate: '{home}/.mine'\n", 5, 8, "state", None),
        (LEAST + "stop: { signal: SIGTREM }\n", 4, 17, "stop.signal", "SIGTERM"),
        (LEAST + "stop: { grace: 5 }\n", 4, 16, "stop.grace", None),
        (LEAST + "environment: { HOME: x }\n", 4, 16, "environment.HOME", None),
        (LEAST + "environment: { A-B: x }\n", 4, 16, "environment.A-B", None),
        (LEAST + "environment: { A: }\n", 4, 18, "environment.A", None),
        (LEAST + "environment: [A]\n", 4, 14, "environment", None),
        (LEAST + "inherit: [HOME]\n", 4, 11, "inherit[0]", None),
        (LEAST + "inherit: ['A=B']\n", 4, 11, "inherit[0]", None),
        (LEAST + "blanks: { A: x }\n", 4, 11, "blanks.A", None),
        (LEAST + "blanks:\n  a: x\n", 5, 3, "blanks", None),
        (LEAST + "about: y\n", 4, 1, "", None),
        ("profile: [\n", 2, 1, "", None),
        ("", 1, 1, "", None),
        ("[" * 30_000, 1, 1, "", None),
    ],
)
def test_a_fault_is_told_at_its_place(
    tmp_path: Path, text: str, line: int, column: int, path: str, nearest: str | None
) -> None:
    file = write(tmp_path, text)
    with pytest.raises(ScenarioError) as caught:
        load_profile(file)
    error = caught.value
    assert (error.place.file, error.place.line, error.place.column) == (str(file), line, column)
    assert (error.path, error.nearest) == (path, nearest)


def test_files_that_are_no_profile_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_profile(tmp_path / "none.yaml")
    with pytest.raises(UsageError, match="larger than"):
        load_profile(write(tmp_path, "#" * (MAX_BYTES + 1)))
    (tmp_path / "p.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match="UTF-8"):
        load_profile(tmp_path / "p.yaml")


def test_a_wrong_name_lists_the_profiles_and_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        find_profile("lab-refrence", SHIPPED)
    assert "deepdebug-local-agent, lab-reference, node-agent." in str(caught.value)
    assert "Did you mean `lab-reference`?" in str(caught.value)


def test_a_name_never_leads_out_of_the_folder(tmp_path: Path) -> None:
    write(tmp_path, LEAST)
    (tmp_path / "inner").mkdir()
    with pytest.raises(UsageError, match="there are: none"):
        find_profile("../p", tmp_path / "inner")


@pytest.mark.parametrize("name", profile_names(SHIPPED))
def test_a_shipped_profile_loads(name: str) -> None:
    assert find_profile(name, SHIPPED).name == name


def test_the_profiles_shipped() -> None:
    assert profile_names(SHIPPED) == ("deepdebug-local-agent", "lab-reference", "node-agent")


@pytest.mark.req("SG-021")
def test_the_reference_and_a_bare_command_get_the_same_variables() -> None:
    assert find_profile("lab-reference", SHIPPED).environment == profile_for_command("x").environment
    assert [name for name, _ in LAB_ENVIRONMENT] == [
        "LAB_GATEWAY_WS_URL",
        "LAB_GATEWAY_TOKEN",
        "LAB_AGENT2_URL",
        "LAB_AGENT2_TOKEN",
        "LAB_TENANT_ID",
        "LAB_AGENT_ID",
        "LAB_WORKSPACES",
        "LAB_TRUSTED_KEYS",
        "LAB_SIGNATURE_MODE",
        "LAB_STATE_DIR",
        "LOCAL_AGENT_CHAT",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "empty"), ("''", "empty"), ("a 'b", "No closing"), ("a {gateway_url}", "`{gateway_ws_url}`")],
)
def test_a_command_that_is_none_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        profile_for_command(text)
    assert words in str(caught.value)


@pytest.mark.req("CHAT-061")
def test_where_a_program_keeps_its_files(tmp_path: Path) -> None:
    """What a profile names; for a command line, what it is told in LAB_STATE_DIR; else nobody knows."""
    named = load_profile(write(tmp_path, LEAST + "state: '{home}/.mine'\n")).state
    assert named is not None
    assert named.fill({"home": "/h"}) == "/h/.mine"
    told = profile_for_command("x y").state
    assert told is not None
    assert told.fill({"home": "/h"}) == "/h/state"
    assert load_profile(write(tmp_path, LEAST)).state is None
