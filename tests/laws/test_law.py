"""The registry of laws, what excuses a break, and journals that stop anywhere."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest
import yaml

import lab
from lab.journal.events import FaultFired, FaultPlanned
from lab.laws import ALL_LAWS, Status, judge_all
from lab.laws.law import Judgement, Law, Tally
from lab.laws.view import JournalView
from tests.laws.journals import ALL_IDS, Tale, chat_with_resume

ROOT = Path(lab.__file__).parent.parent


@cache
def ledger_ids() -> frozenset[str]:
    texts = [(ROOT / f"contract/requirements/{name}.yaml").read_text("utf-8") for name in ("la", "partner")]
    return frozenset(entry["id"] for text in texts for entry in yaml.safe_load(text))


def test_ids_are_unique() -> None:
    ids = [law.id for law in ALL_LAWS]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("law", ALL_LAWS, ids=[law.id for law in ALL_LAWS])
def test_a_law_names_requirements_of_the_ledger(law: Law) -> None:
    known = ledger_ids()
    assert law.requirements
    assert set(law.requirements) <= known
    assert len(set(law.requirements)) == len(law.requirements)
    assert law.party in ("local_agent", "gateway", "partner_api", "partner_client", "store", "issuer")
    assert law.sentence
    assert not law.sentence.endswith(".")


def _imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            names |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def _file_of(module: str) -> Path | None:
    path = ROOT / module.replace(".", "/")
    return next((one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()), None)


@pytest.mark.parametrize("folder", ["lab/laws", "lab/tap"])
def test_nothing_of_the_protocol_core_stands_behind_a_judge(folder: str) -> None:
    waiting = sorted((ROOT / folder).rglob("*.py"))
    seen: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        names = _imports(path)
        assert not [name for name in names if name == "lab.protocol" or name.startswith("lab.protocol.")], path
        waiting += [found for name in names if name.startswith("lab") and (found := _file_of(name)) is not None]
    assert len(seen) > 5


def test_every_law_holds_in_a_chat_that_resumes() -> None:
    tale = chat_with_resume()
    words = {one.law.id: one.status for one in judge_all(tale.entries)}
    nothing = {
        *("after-fatal", "gateway-after-fatal", "retransmission", "gateway-retransmission"),
        *("cursors-tell-nothing", "polls-bounded", "secrets-masked", "state-private"),
        *("timeouts", "gateway-timeouts", "refusals", "gateway-refusals", "signature-refusal"),
        *("cancel-honoured", "cancel-at-agent2", "approvals", "audit-forwarded", "v1-fallback"),
        *("goes-on", "gateway-goes-on", "nothing-behind-fatal", "result-renewed", "unhandled-rejected"),
    }
    assert {name for name, status in words.items() if status is Status.NOTHING} == nothing
    assert {name for name, status in words.items() if status is Status.HELD} == set(ALL_IDS) - nothing


@pytest.mark.parametrize("end", [None, "interrupted", "failed"])
def test_a_journal_that_stops_anywhere_breaks_no_law(end: str | None) -> None:
    whole = chat_with_resume().entries
    for length in range(len(whole)):
        tale = Tale()
        tale.entries = list(whole[:length])
        tale.t = whole[length].t
        if end is not None:
            tale.end(end)
        assert [one for one in judge_all(tale.entries) if one.status is Status.BROKEN] == []


@pytest.mark.parametrize("law", ALL_IDS)
def test_without_frames_there_is_nothing_to_judge(law: str) -> None:
    assert Tale().status(law) is Status.NOTHING


def _broken(party: str = "gateway") -> Law:
    def judge(_: JournalView) -> Judgement:
        tally = Tally("one", party)
        tally.broken("gw", "this", "that", (1,))
        return tally.judgement()

    return Law("one", "One", party, ("WS-001",), judge)


@pytest.mark.parametrize(
    ("excuse", "fires", "status"),
    [
        (("one", "gateway"), True, Status.EXCUSED),
        (("one", "gw"), True, Status.EXCUSED),
        (("one", "gateway"), False, Status.BROKEN),
        (("one", "local_agent"), True, Status.BROKEN),
        (("two", "gateway"), True, Status.BROKEN),
    ],
)
def test_a_fault_that_fired_excuses_what_it_names(excuse: tuple[str, str], fires: bool, status: Status) -> None:
    tale = Tale()
    tale.add(FaultPlanned("f1", "drop", "ack", 3, (excuse,)))
    if fires:
        tale.add(FaultFired("f1", "drop", "ack"))
    (judged,) = judge_all(tale.entries, [_broken()])
    assert judged.status is status
    assert len(judged.judgement.violations) == 1


def test_an_excuse_leaves_a_law_that_holds_alone() -> None:
    tale = chat_with_resume()
    tale.add(FaultPlanned("f1", "drop", "ack", 3, (("acks", "local_agent"),)))
    tale.add(FaultFired("f1", "drop", "ack"))
    assert tale.status("acks") is Status.HELD


def test_unknown_is_only_what_no_case_can_tell() -> None:
    tally = Tally("one", "gateway")
    assert tally.judgement().status is Status.NOTHING
    tally.unsure()
    assert tally.judgement() == Judgement(Status.UNKNOWN, 0, unsure=1)
    tally.held()
    assert tally.judgement() == Judgement(Status.HELD, 1, unsure=1)
