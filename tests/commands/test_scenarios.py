"""`lab list` and `lab validate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.cli import run_command_line
from tests.command_line import ROOT, make_project
from tests.scenario.legs import ALL_FILES

READY = "steps:\n  - wait: { for: local_agent.ready, within: 5s }\n"


def test_the_scenarios_of_the_project(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them by default, by their files, with promise and tags."""
    monkeypatch.chdir(ROOT)
    assert run_command_line(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [path.stem for path in ALL_FILES]
    answer = next(line for line in lines if line.startswith("chat-answer "))
    assert "A question is answered and both turns are stored   [chat smoke]" in answer
    assert run_command_line(["validate"]) == 0
    assert capsys.readouterr().out == f"{len(lines)} of {len(lines)} scenarios are sound\n"


def test_lists_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    """The same as JSON."""
    assert run_command_line(["list", str(ROOT / "scenarios"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [set(row) for row in rows] == [{"scenario", "about", "tags", "file"}] * len(rows)
    assert {row["scenario"]: row["tags"] for row in rows}["chat-answer"] == ["chat", "smoke"]


def test_every_mistake_is_told_at_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error, with the count on standard output; status 2."""
    project = make_project(tmp_path, good=READY, wrong="sead: 7\nsteps:\n  - wayt: {}\n", empty="")
    (project / "scenarios" / "void.yaml").write_text("")
    assert run_command_line(["validate", str(project / "scenarios")]) == 2
    captured = capsys.readouterr()
    assert captured.out == "1 of 4 scenarios are sound\n"
    for words in ("wrong.yaml:3:1: sead", "Did you mean `seed`?", "wrong.yaml:5:5", "void.yaml: the file is empty"):
        assert words in captured.err
    assert run_command_line(["validate", str(project / "scenarios"), "--json"]) == 2
    rows = {Path(row["file"]).stem: row["mistakes"] for row in json.loads(capsys.readouterr().out)}
    assert rows["good"] == []
    assert len(rows["wrong"]) == 2


@pytest.mark.parametrize("name", ["list", "validate"])
def test_a_folder_that_is_not_there(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 2; so is one without scenarios."""
    for path in (tmp_path / "none", tmp_path):
        assert run_command_line([name, str(path)]) == 2
        captured = capsys.readouterr()
        assert captured.err.startswith(f"lab: {path}: there is no")
        assert captured.out == ""


def test_a_list_refuses_what_it_cannot_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With all its mistakes."""
    project = make_project(tmp_path, wrong="sead: 7\n" + READY)
    assert run_command_line(["list", str(project / "scenarios")]) == 2
    assert "Did you mean `seed`?" in capsys.readouterr().err


def test_a_script_that_agent2_could_not_play(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is found before the run that would need it."""
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "fixtures" / "bad.yaml").write_text("script: bad\nabout: x\nsteps:\n  - txt: hello\n")
    (tmp_path / "one.yaml").write_text(
        "scenario: one\nabout: x\nagent2: { kinds: [chat], scripts: { chat: fixtures/bad.yaml } }\n"
        "steps: [{ wait: { for: local_agent.ready } }]\n"
    )
    assert run_command_line(["validate", str(tmp_path / "one.yaml")]) == 2
    assert "bad.yaml:4" in capsys.readouterr().err
