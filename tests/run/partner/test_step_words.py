"""What steps of the partner leg are called on a terminal."""

from __future__ import annotations

from pathlib import Path

from lab.run.partner.step_words import describe_partner
from tests.run.partner.played import written
from tests.scenario.partner_texts import FULL_PARTNER


def test_each_kind_has_its_words(tmp_path: Path) -> None:
    """Those of the whole language."""
    steps = FULL_PARTNER.partition("steps:\n")[2].partition("expect:")[0]
    api = (
        "{ teams: [shop, office], agents: { store: { script: fixtures/partner/hello.yaml }, talk: { team: office } } }"
    )
    scenario = written(tmp_path, steps, api, "links: { partner_api: {}, front: { to: issuer }, store: {} }\n")
    assert [describe_partner(step) for step in scenario.steps] == [
        ("membership", "membership of anna ends"),
        ("membership", "membership of anna"),
        ("conversation", "conversation c1 of anna"),
        ("conversation", "conversation c2 of anna, the key of c1 again"),
        ("grant", "wrong grant for c1"),
        ("bind", "bind c1"),
        ("context", "context of c1"),
        ("recover", "recover the context of c1"),
        ("attach", "upload f1 (a/png)"),
        ("attach", "upload f2 (text/plain)"),
        ("download", "read f1 back"),
        ("message", "message r1 in c1"),
        ("message", "message r2 in c1, the key of r1 again"),
        ("follow", "read r1 to 3 events"),
        ("poll", "run r1 until running"),
        ("history", "history of c1"),
        ("call", "PUT /conversations/{c1}/context with only:chat:read key"),
        ("control", "clock 360 s"),
        ("control", "remove c1"),
        ("store", "store misbehaves"),
        ("store", "store forgets its sessions"),
        ("fault", "front link cut, 1 s"),
        ("fault", "store crash, 1 s"),
        ("wait", "fault cut-1 fired"),
    ]


def test_a_poll_now_a_follow_and_a_call_without_a_key(tmp_path: Path) -> None:
    steps = (
        "  - conversation: { conversation: c1, user: anna }\n  - message: { run: r1, conversation: c1, text: x }\n"
        "  - poll: { run: r1, until: now }\n  - follow: { run: r1 }\n"
        "  - call: { method: GET, path: /x, key: none, status: 401 }\n  - control: { revoke_grant: c1 }\n"
        "  - grant: { conversation: c1 }\n"
    )
    words = [describe_partner(step)[1] for step in written(tmp_path, steps).steps]
    assert words[2:] == [
        "run r1 now",
        "follow r1 to its end",
        "GET /x with no key",
        "revoke grant c1",
        "grant for c1",
    ]
