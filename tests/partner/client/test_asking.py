import hashlib
import json
from email import message_from_bytes

import pytest

from lab.journal.events import digest
from lab.journal.partner_events import fingerprint
from lab.partner.client.asking import ABSENT, Departure, Site, Upload, input_hash
from lab.partner.client.words import (
    GET_CONTENT,
    GET_HISTORY,
    POST_ATTACHMENT,
    POST_MESSAGE,
    PUT_CONTEXT,
    PUT_MEMBERSHIP,
    base_path,
)
from tests.partner.samples import ACTOR

SITE = Site("http://h/v1/orgs/o/chat", "chat-key")
IDS = {"conversationId": "a/b c"}


def test_a_body_is_compact_json_in_utf8() -> None:
    ask = SITE.ask(POST_MESSAGE, IDS, members={**ACTOR, "message": "é"}, idempotency_key="k")
    assert (ask.method, ask.url) == ("POST", "http://h/v1/orgs/o/chat/conversations/a%2Fb%20c/messages")
    assert ask.body == '{"externalUserId":"u","externalTeamId":"t","message":"é"}'.encode()
    assert (ask.content_type, ask.key, ask.idempotency_key) == ("application/json", "chat-key", "k")
    assert (ask.conversation_id, ask.run_id, ask.marks) == ("a/b c", None, {})


def test_a_query_is_escaped() -> None:
    ask = SITE.ask(GET_HISTORY, {"conversationId": "c"}, query={"externalUserId": "a&b c", "limit": 5})
    assert ask.url.endswith("/conversations/c/messages?externalUserId=a%26b+c&limit=5")
    assert (ask.body, ask.content_type, ask.input) == (None, None, "")
    assert SITE.ask(GET_CONTENT, {"conversationId": "c", "attachmentId": "f"}, query={}).url.endswith("/f/content")


@pytest.mark.req("PRIV-015")
def test_what_a_journal_may_hold_has_no_secret_and_no_content() -> None:
    members = {
        **ACTOR,
        "serverId": "s",
        "destination": "https://93.184.216.34/mcp",
        "grant": "tg1.secret",
        "expiresAt": "2026-01-01T00:00:00.000Z",
        "expectedVersion": 0,
    }
    sent = SITE.ask(PUT_CONTEXT, IDS, members=members).sent
    assert sent == {**members, "grant": fingerprint("tg1.secret")}
    assert SITE.ask(POST_MESSAGE, IDS, members={"message": "hello"}).sent == {"message": digest("message", "hello")}
    stray = SITE.ask(PUT_MEMBERSHIP, {}, members={"prompt": "hello", "role": "two words"}).sent
    assert "hello" not in str(stray)
    assert "two words" not in str(stray)
    ask = SITE.ask(POST_MESSAGE, IDS, members={"message": "hello"}, idempotency_key="idem")
    for hidden in ("hello", "chat-key", "idem"):
        assert hidden not in repr(ask)


def test_a_departure_changes_what_it_names_alone() -> None:
    departure = Departure(members={"role": ABSENT, "stray": 1}, key="other", headers={"X-Agent-Turn-Id": "t"})
    ask = SITE.ask(PUT_MEMBERSHIP, {}, members={**ACTOR, "role": "member"}, departure=departure, idempotency_key="k")
    assert json.loads(ask.body or b"") == {**ACTOR, "stray": 1}
    assert (ask.key, ask.idempotency_key, ask.headers) == ("other", "k", {"X-Agent-Turn-Id": "t"})
    assert ask.marks == {"byOrder": True}
    bare = Departure(key=ABSENT, idempotency_key=ABSENT, body=b"{", content_type="text/plain")
    ask = SITE.ask(PUT_MEMBERSHIP, {}, members=ACTOR, departure=bare, idempotency_key="k")
    assert (ask.key, ask.idempotency_key, ask.body, ask.content_type) == (None, None, b"{", "text/plain")
    asked = SITE.ask(GET_HISTORY, IDS, query=ACTOR, departure=Departure(members={"externalTeamId": ABSENT}))
    assert asked.url.endswith("?externalUserId=u")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 1, "b": None, "c": [], "d": ""}, True),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"a": 1}, {"a": 2}, False),
        ({"a": False}, {}, False),
        ({"a": 0}, {}, False),
    ],
)
def test_the_same_input_has_the_same_hash(one: dict[str, object], other: dict[str, object], same: bool) -> None:
    assert (input_hash(one) == input_hash(other)) is same


@pytest.mark.req("AT-001")
@pytest.mark.parametrize("name", ["x.txt", 'a"b\r\n.txt', "é.txt"])
def test_an_upload_is_a_form_with_the_file_and_the_actor(name: str) -> None:
    ask = SITE.ask(POST_ATTACHMENT, IDS, upload=Upload(name, "text/plain", b"\x00\r\n--x", ACTOR))
    assert ask.body is not None
    form = message_from_bytes(f"Content-Type: {ask.content_type}\r\n\r\n".encode() + ask.body)
    parts = {
        part.get_param("name", header="content-disposition"): part for part in form.walk() if not part.is_multipart()
    }
    assert {key: parts[key].get_payload() for key in ACTOR} == ACTOR
    assert parts["file"].get_payload(decode=True) == b"\x00\r\n--x"
    assert parts["file"].get_content_type() == "text/plain"
    sha256 = hashlib.sha256(b"\x00\r\n--x").hexdigest()
    assert ask.sent == {
        **ACTOR,
        "mimeType": "text/plain",
        "bytes": 6,
        "sha256": sha256,
        "name": digest("file-name", name),
    }
    assert ask == SITE.ask(POST_ATTACHMENT, IDS, upload=Upload(name, "text/plain", b"\x00\r\n--x", ACTOR))


@pytest.mark.req("PA-006")
def test_the_base_of_all_routes() -> None:
    assert base_path("org-1") == "/v1/orgs/org-1/chat"
