"""The page of a run."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from lab.errors import SutFault
from lab.journal.events import (
    Agent2Line,
    BodyAnswered,
    FaultFired,
    LinkChanged,
    SessionChanged,
    SocketClosed,
    SocketOpened,
    StepEnded,
    StepStarted,
    SutOutput,
    digest,
)
from lab.laws.law import Status
from lab.report import page
from lab.report.page import page_text
from lab.run.notices import Notice
from lab.run.verdict import Finding, Outcome
from tests.run.made import entries, frame, held, judged, result, step_entries, verdict, violation

VOID = {"meta", "br"}


class Balanced(HTMLParser):
    """Fails on a tag that is not closed where it must be."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(text: str) -> Balanced:
    parser = Balanced()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    return parser


JOURNAL = entries(
    SocketOpened("c1", "/agent", "local_agent"),
    SessionChanged("c1", "ready", "local_agent", None, {"revision": "2.3"}),
    StepStarted(0, "assign", "assign <q1>", 12),
    frame(type="job.assign", direction="cp-to-la", seq=2, ack=1, payload={"kind": "chat", "input": digest("i", "x")}),
    frame(type="content.response", seq=3, chunk={"index": 0, "total": 2}, fate="dropped"),
    frame(),
    BodyAnswered("c1", "r", "job.stream", "0" * 64, "j", "ok", 120, "0" * 64, {"events": ({}, {})}),
    FaultFired("f", "cut", "link gateway"),
    LinkChanged("gateway", "cut"),
    SutOutput("local_agent", "out", digest("line", "x")),
    SocketClosed("c1", 1006, "none"),
    StepEnded(0, "failed", "its <note>"),
)


def test_everything_stands_on_it() -> None:
    """Verdict, findings, steps, expectations, laws, timeline; the entries of a finding are marked."""
    laws = [judged(Status.BROKEN, violation("some-law", "local_agent", 3)), judged(Status.NOTHING, law="other")]
    reached = verdict(JOURNAL, laws, [held(True), held(False), held(None)])
    text = page_text(result(reached, Path("runs/x"), JOURNAL))
    parsed(text)
    for words in (
        '<span class="verdict fail">FAIL</span>',
        "some-law (local_agent)   The promise of some-law   SQ-020",
        "<dt>due</dt><dd>due that</dd>",
        "again: lab run x.yaml --seed 7",
        "assign &lt;q1&gt;",
        "its &lt;note&gt;",
        '<summary class="dim">the frames around it</summary>',
        "← job.assign",
        "seq 2 · ack 1 · kind chat · 10 bytes",
        '→ content.response</td><td class="dim">dropped · seq 3',
        "chunk 1/2",
        "→ (no frame)",
        "120 bytes · 2 events",
        "⚡ cut link gateway",
        "code 1006 by none",
        "revision=2.3",
        "lab 0.1.0",
    ):
        assert words in text, words
    assert re.findall(r'<tr id="e(\d+)" class="marked', text) == ["3"]
    assert [text.count(f">{word}</td>") for word in ("held", "broken", "unknown")] == [1, 2, 1]


def cases(*made: Finding) -> str:
    return page_text(result(replace(verdict(JOURNAL), findings=made), Path("x"), JOURNAL))


def test_a_promise_stands_there_once_with_all_its_cases() -> None:
    """Who broke it is told of each where it was not the same one."""
    first = Finding(Outcome.FAIL, "some-law", "The promise.", "seen one", participant="a", entries=(4,))
    second = replace(first, seen="seen two", entries=(5,))
    text = cases(first, second)
    parsed(text)
    assert text.count("The promise.") == 1
    assert "<strong>some-law (a)   The promise.</strong>" in text
    assert text.count("<dt>seen</dt>") == text.count("<details>") == 2
    assert "<dt>who</dt>" not in text
    text = cases(first, replace(second, participant="b"))
    assert "<strong>some-law   The promise.</strong>" in text
    assert "<dt>who</dt><dd>a</dd>" in text
    assert "<dt>who</dt><dd>b</dd>" in text


def test_so_many_cases_are_shown() -> None:
    """The rest is counted; two expectations are two promises."""
    finding = Finding(Outcome.FAIL, "some-law", "The promise.", "seen this")
    text = cases(*[finding] * (page.CASES_SHOWN + 3))
    assert text.count("<dt>seen</dt>") == page.CASES_SHOWN
    assert "3 further cases are in result.json." in text
    text = cases(replace(finding, sentence="one"), replace(finding, sentence="two"))
    assert text.count("<strong>") == 2


def test_what_is_to_be_known_stands_on_it() -> None:
    """Also on the page of a run that passed."""
    text = page_text(result(replace(verdict(), notices=(Notice("mine", "did not <end>", 4),)), Path("x")))
    parsed(text)
    assert "mine did not &lt;end&gt; (journal 4)" in text
    assert "To be known" not in page_text(result(verdict(), Path("x")))


def test_a_row_that_a_finding_names_is_always_there() -> None:
    """A line of agent2's has none otherwise."""
    line = Agent2Line("j", 4, "0" * 64, 9, "a.yaml:7")
    journal = entries(line, line)
    made = replace(verdict(journal), findings=(Finding(Outcome.FAIL, "some-law", "It.", entries=(1,)),))
    assert re.findall(r'<tr id="e(\d+)"', page_text(result(made, Path("x"), journal))) == ["1"]


def test_nothing_on_it_can_act() -> None:
    """No script, no link outwards, and all that came from outside is escaped."""
    evil = '<script>alert("x")</script><img src=x onerror=alert(1)>'
    made = result(verdict(step_entries(evil, "failed", evil), stop=SutFault(evil)), Path("x"), step_entries(evil))
    made = replace(made, repeat_command=evil, scenario=replace(made.scenario, about=evil, name=evil))
    text = page_text(made)
    tags = parsed(text).tags
    assert not {"script", "img", "link", "a", "iframe"} & set(tags)
    assert "http" not in text
    assert "&lt;script&gt;" in text


def test_no_digest_or_content_of_a_frame_is_on_it() -> None:
    """Only metadata that is known to be such."""
    leaky = entries(frame(type="job.assign", payload={"text": "the prompt", "state": ["the prompt"], "status": "ok"}))
    text = page_text(result(verdict(leaky), Path("x"), leaky))
    assert "the prompt" not in text
    assert "status ok" in text


def test_a_long_journal_is_cut() -> None:
    """And the page says so."""
    long = entries(*[LinkChanged("gateway", "cut")] * (page.ROWS_SHOWN + 5))
    text = page_text(result(verdict(long), Path("x"), long))
    assert text.count('<tr id="e') == page.ROWS_SHOWN
    assert "5 further rows are in journal.jsonl." in text


def test_a_run_of_nothing_has_a_page() -> None:
    """It ended before it began."""
    parsed(page_text(result(verdict(interrupted=True), Path("x"), [])))
