"""What a person sees: on a terminal, in a file, in a narrow window, and when nobody reads."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path

import pytest

from lab.journal.events import StepEnded, StepStarted
from lab.laws.law import Status
from lab.report.console import FINDINGS_SHOWN, ConsoleReport, PatientConsole
from lab.report.event_words import LEGEND
from lab.run.notices import Notice
from lab.run.runner import RunResult
from lab.run.verdict import Finding, Outcome, Verdict
from tests.run.made import context, entries, frame, judged, result, scenario, verdict, violation


def show(
    console: PatientConsole,
    reached: Verdict | None = None,
    *,
    outcome: str = "done",
    note: str = "a note",
    kind: str = "assign",
) -> RunResult:
    """One run of one step."""
    report, ctx = ConsoleReport(console), context()
    report.listen(scenario(), 7, ctx.journal)
    ctx.journal.record("driver", StepStarted(0, kind, "assign q1 (chat)", 12))
    ctx.journal.record("driver", StepEnded(0, outcome, note))
    done = result(reached or verdict(), Path("runs/made/1"))
    report.result(done)
    return done


def plain(width: int = 80) -> PatientConsole:
    return PatientConsole(file=io.StringIO(), width=width)


def text_of(console: PatientConsole) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_pass_in_plain_lines() -> None:
    """As the README shows it; no escape sequence where there is no terminal."""
    console = plain()
    show(console)
    assert text_of(console).splitlines() == [
        "made · Made by hand      seed 7 · real clock",
        "  ✓ assign q1 (chat)                  0.0 s   a note",
        "  laws: ",
        "  3 frames · 0 sent again",
        "PASS  1.2 s   runs/made/1   again: lab run x.yaml --seed 7",
    ]


@pytest.mark.parametrize(
    ("outcome", "kind", "mark"),
    [
        ("done", "assign", "✓"),
        ("failed", "assign", "✗"),
        ("interrupted", "assign", "■"),
        ("done", "fault", "⚡"),
        ("failed", "fault", "✗"),
    ],
)
def test_each_end_of_a_step_has_its_mark(outcome: str, kind: str, mark: str) -> None:
    """A fault that happened is no tick."""
    console = plain()
    show(console, outcome=outcome, kind=kind)
    assert f"  {mark} assign q1" in text_of(console)


def test_a_step_is_one_line_whatever_its_note() -> None:
    """The rest of a note stands in the finding."""
    console = plain()
    show(console, note="first\nsecond")
    assert "first" in text_of(console)
    assert "second" not in text_of(console)


def test_a_terminal_gets_colour_and_a_spinner_that_goes_away() -> None:
    """Nothing of it is left running."""
    console = PatientConsole(file=io.StringIO(), force_terminal=True, width=80, color_system="standard")
    show(console)
    text = text_of(console)
    assert "\x1b[" in text
    assert "assign q1 (chat) …" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") > 0


def test_a_spinner_makes_room_for_what_else_is_printed() -> None:
    """And the step's end finds none to stop."""
    console = PatientConsole(file=io.StringIO(), force_terminal=True, width=80)
    report, ctx = ConsoleReport(console), context()
    report.listen(scenario(), 7, ctx.journal)
    ctx.journal.record("driver", StepStarted(0, "wait", "ready", 1))
    report.pause()
    report.pause()
    assert text_of(console).endswith("\x1b[2K") or "\x1b[?25h" in text_of(console)
    ctx.journal.record("driver", StepEnded(0, "done"))
    assert "✓" in text_of(console)


def test_a_terminal_without_colour_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR is heard."""
    monkeypatch.setenv("NO_COLOR", "1")
    console = PatientConsole(file=io.StringIO(), force_terminal=True, width=80)
    show(console)
    assert "\x1b[3" not in text_of(console)


def test_a_narrow_window_breaks_no_word_and_loses_none() -> None:
    """Lines are left whole, so that a path or a command can be copied."""
    narrow, wide = plain(20), plain(200)
    broken = verdict(laws=[judged(Status.BROKEN, violation())])
    show(narrow, broken)
    show(wide, broken)
    assert text_of(narrow) == text_of(wide)


def test_markup_in_names_is_shown_as_it_stands() -> None:
    """Brackets are no style."""
    console = plain()
    show(console, note="[bold]x[/bold] :zap: [link]")
    assert "[bold]x[/bold] :zap: [link]" in text_of(console)


def test_one_broken_promise_is_told_once_and_its_other_cases_counted() -> None:
    """With the page that has it all."""
    console = plain()
    show(console, verdict(laws=[judged(Status.BROKEN, *[violation("some-law", "local_agent", 1)] * 4)]))
    text = text_of(console)
    assert text.count("FAIL  some-law (local_agent)   The promise of some-law   SQ-020") == 1
    assert "      seen   seen this\n      due    due that\n      near   the nearest miss\n" in text
    assert "      … and 3 more of some-law\n" in text


def test_so_many_broken_promises_are_told_and_the_rest_counted() -> None:
    """Each by its first case."""
    console = plain()
    who = [f"agent_{number}" for number in range(FINDINGS_SHOWN + 3)]
    show(console, verdict(laws=[judged(Status.BROKEN, *[violation("some-law", name, 1) for name in who])]))
    text = text_of(console)
    assert text.count("FAIL  some-law (") == FINDINGS_SHOWN
    assert "… and 3 more broken promises in the report" in text
    assert "a promise broke; the whole story: runs/made/1/report.html" in text


def told(*findings: Finding, notices: tuple[Notice, ...] = ()) -> str:
    console = plain()
    journal = entries(*[frame(type="job.event", seq=n + 1) for n in range(9)])
    made = replace(verdict(), outcome=Outcome.FAIL, findings=findings, notices=notices)
    ConsoleReport(console).result(result(made, Path("runs/made/1"), journal))
    return text_of(console)


def test_the_frames_around_a_finding() -> None:
    """Below its details; those of the finding are marked."""
    text = told(Finding(Outcome.FAIL, "some-law", "The promise.", entries=(4,), requirements=("SQ-001",)))
    lines = text.splitlines()
    at = lines.index(f"      {LEGEND}")
    assert lines[at - 1] == "      where  journal 4"
    assert [("▸" in line, line.split("seq ")[1].split(" ")[0]) for line in lines[at + 1 : at + 7]] == [
        (False, "2"),
        (False, "3"),
        (False, "4"),
        (True, "5"),
        (False, "6"),
        (False, "7"),
    ]
    assert "      the rules behind a law: lab explain some-law" in text


def test_frames_are_told_once_a_law_and_once_an_entry() -> None:
    """A second party of one law, and a second law of one entry, have them above."""
    first = Finding(Outcome.FAIL, "some-law", "The promise.", participant="a", entries=(4,))
    assert told(first, replace(first, participant="b", entries=(6,))).count(LEGEND) == 1
    assert told(first, replace(first, head="other-law")).count(LEGEND) == 1
    assert told(first, replace(first, head="other-law", entries=(6,))).count(LEGEND) == 2
    assert LEGEND not in told(replace(first, entries=()))


def test_no_rule_is_named_where_no_law_broke() -> None:
    """An expectation is the scenario's own."""
    assert "lab explain" not in told(Finding(Outcome.FAIL, "expectation", "job.q1.runs"))


def test_what_is_to_be_known_is_told_before_the_verdict() -> None:
    """Also of a run that passed."""
    lines = told(notices=(Notice("mine", "did not end", 4),)).splitlines()
    assert lines[-3] == "NOTE  mine did not end (journal 4)"


def test_a_detail_of_several_lines_is_indented() -> None:
    """So that the eye finds the next one."""
    from lab.errors import SutFault

    console = plain()
    show(console, verdict(stop=SutFault("it died:\n  one\n  two")))
    assert "      seen   one\n               two\n" in text_of(console)


def test_a_path_below_here_is_shown_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And with `latest` while it is."""
    from lab.run.folder import make_run_folder

    monkeypatch.chdir(tmp_path)
    folder = make_run_folder(tmp_path / "runs", "made", "now", 1)
    console = plain()
    ConsoleReport(console).result(result(verdict(), folder))
    assert "   runs/made/latest   again" in text_of(console)


def test_a_reader_that_goes_away_is_no_failure() -> None:
    """It falls silent, and the run goes on."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as file:
        console = PatientConsole(file=file, width=80)
        show(console)
        assert (console.quiet, console.failure) == (True, None)


def test_a_full_disk_is_kept_for_the_end() -> None:
    """The run goes on, the command tells it."""
    with Path("/dev/full").open("w") as file:
        console = PatientConsole(file=file, width=80)
        show(console)
        assert console.quiet
        assert console.failure is not None
        assert console.failure.strerror == "No space left on device"
