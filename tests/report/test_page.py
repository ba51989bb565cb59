"""The page of a run."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from lab.errors import SutFault
from lab.journal.events import (
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
        "← job.assign",
        "seq 2 · ack 1 · kind chat · 10 bytes",
        "→ content.response [dropped]",
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
