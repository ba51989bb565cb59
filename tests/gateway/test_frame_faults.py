"""The fate of single frames under armed faults."""

from __future__ import annotations

from typing import Any

import pytest

from lab.faults.plan import Fault, FrameAnchor
from lab.gateway import frame_faults
from lab.gateway.frame_faults import FrameFaults, Passage, tampered
from lab.journal.events import Frame

AGENT, GATEWAY = "local_agent", "gateway"


def frame(type_name: str | None, **members: Any) -> Frame:
    return Frame("c1", "la-to-cp", 10, "0" * 64, type=type_name, **members)


def fault(kind: str, type_name: str, sender: str = AGENT, name: str = "f", **anchor: Any) -> Fault:
    link = "gateway" if kind in ("cut", "reset", "delay") else None
    return Fault(name, kind, link, FrameAnchor(type_name, sender, **anchor), seconds=1.0 if kind == "hold" else None)


def armed(*planned: Fault) -> FrameFaults:
    made = FrameFaults()
    for one in planned:
        made.watch.arm(one)
    return made


@pytest.mark.parametrize(("kind", "fate"), [("drop", "dropped"), ("duplicate", "passed"), ("hold", "delayed")])
def test_a_frame_fault_decides_the_fate_of_the_frame_it_waits_for_and_of_no_other(kind: str, fate: str) -> None:
    planned = fault(kind, "job.event", nth=2)
    watch = armed(planned)
    seen = [("heartbeat", AGENT), ("job.event", AGENT), ("job.event", GATEWAY)]
    assert [watch.pass_frame(frame(name), sender) for name, sender in seen] == [Passage()] * 3
    assert watch.pass_frame(frame("job.event"), AGENT) == Passage(fate, planned)
    assert watch.pass_frame(frame("job.event"), AGENT) == Passage()


def test_a_link_fault_strikes_behind_its_frame_whatever_becomes_of_the_frame() -> None:
    cut, drop = fault("cut", "heartbeat", name="cut"), fault("drop", "heartbeat", name="drop")
    assert armed(cut).pass_frame(frame("heartbeat"), AGENT) == Passage(link_faults=(cut,))
    assert armed(cut, drop).pass_frame(frame("heartbeat"), AGENT) == Passage("dropped", drop, (cut,))


def test_only_a_doubled_frame_is_copied_and_only_a_tampered_one_altered() -> None:
    passages = {
        kind: armed(fault(kind, "heartbeat")).pass_frame(frame("heartbeat"), AGENT)
        for kind in ("drop", "duplicate", "hold", "tamper")
    }
    assert [kind for kind, passage in passages.items() if passage.copies] == ["duplicate"]
    assert [kind for kind, passage in passages.items() if passage.tampers] == ["tamper"]
    assert (passages["tamper"].fate, Passage().copies, Passage().tampers) == ("passed", False, False)


@pytest.mark.parametrize(("signature", "altered"), [("Abc_-", "Bbc_-"), ("xA", "AA")])
def test_a_tampered_frame_differs_in_one_character_of_its_signature(signature: str, altered: str) -> None:
    text = f'{{"sig":{{"signature":"{signature}"}},"payload":{{"a": 1}}}}'
    assert tampered(text) == text.replace(f'"{signature}"', f'"{altered}"')


def test_the_first_of_two_frame_faults_wins() -> None:
    hold, drop = fault("hold", "heartbeat", name="a"), fault("drop", "heartbeat", name="b")
    assert armed(hold, drop).pass_frame(frame("heartbeat"), AGENT) == Passage("delayed", hold)


def test_an_ack_is_told_by_the_type_of_the_frame_it_acks() -> None:
    planned = fault("drop", "ack", of="job.assign")
    watch = armed(planned)
    watch.pass_frame(frame("job.assign", msg_id="m1"), GATEWAY)
    watch.pass_frame(frame("heartbeat", msg_id="m2"), AGENT)
    assert watch.pass_frame(frame("ack", payload={"ackMsgId": "m2"}), AGENT) == Passage()
    assert watch.pass_frame(frame("ack", payload={"ackMsgId": "m9"}), AGENT) == Passage()
    assert watch.pass_frame(frame("ack", payload={"ackMsgId": "m1"}), AGENT) == Passage("dropped", planned)


def test_a_chunk_is_told_by_the_kind_of_its_request_and_its_index() -> None:
    planned = fault("drop", "content.response", content="job.stream", chunk=1)
    watch = armed(planned)
    for request, kind in (("r1", "chat.session"), ("r2", "job.stream")):
        watch.pass_frame(frame("content.request", request_id=request, payload={"kind": kind}), GATEWAY)

    def chunk(request: str | None, index: int) -> Passage:
        return watch.pass_frame(frame("content.response", request_id=request, chunk={"index": index}), AGENT)

    assert [chunk("r1", 1), chunk("r2", 0), chunk(None, 1), chunk("r9", 1)] == [Passage()] * 4
    assert chunk("r2", 1) == Passage("dropped", planned)


def test_what_is_no_frame_passes() -> None:
    watch = armed(fault("drop", "heartbeat"))
    assert watch.pass_frame(frame(None), AGENT) == Passage()


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_faults, "REMEMBERED", 3)
    watch = armed(fault("drop", "ack", of="heartbeat"))
    for number in range(5):
        watch.pass_frame(frame("heartbeat", msg_id=f"m{number}"), AGENT)
        watch.pass_frame(frame("content.request", request_id=f"r{number}", payload={"kind": "diff"}), GATEWAY)
    assert watch.pass_frame(frame("ack", payload={"ackMsgId": "m1"}), AGENT) == Passage()
    assert watch.pass_frame(frame("ack", payload={"ackMsgId": "m2"}), AGENT).fate == "dropped"
