import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.journal.events import digest
from lab.journal.partner_events import fingerprint
from lab.tap.partner_facts import MOST_LISTED, UNKNOWN, of_data, of_error, of_event, of_sent
from tests.partner.samples import CONVERSATION, FILE, ITEM, MEMBERSHIP, NOW, RUN, USAGE

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["items", "text", "mcp", "x"]), inner),
    max_leaves=8,
)


def test_ids_numbers_and_safe_words_are_kept() -> None:
    assert of_data(MEMBERSHIP) == MEMBERSHIP
    assert of_data(CONVERSATION) == CONVERSATION
    told = of_data(RUN)
    assert told["usage"]["costUsd"] == USAGE["costUsd"]
    assert told["timings"]["iterations"][0]["tools"] == ({"durationMs": 1},)
    assert told["toolErrors"] == ({"toolCallId": "call_1", "name": "catalog_get", "errorCode": "TOOL_FAILED"},)


def test_content_stands_as_digests() -> None:
    item = {
        **ITEM,
        "role": "assistant",
        "text": "private words",
        "attachments": [FILE],
        "parts": [
            {"type": "text", "text": "private words"},
            {"type": "tool_call", "toolCallId": "call_1", "name": "catalog_get", "status": "failed"},
        ],
    }
    told = of_data({"items": [item], "nextCursor": "cursor"})
    assert told == {
        "items": (
            {
                "id": "i",
                "turnId": "t",
                "role": "assistant",
                "text": digest("text", "private words"),
                "createdAt": NOW,
                "attachments": ("f",),
                "parts": (
                    {"type": "text", "text": digest("text", "private words")},
                    {"type": "tool_call", "toolCallId": "call_1", "name": "catalog_get", "status": "failed"},
                ),
            },
        ),
        "nextCursor": fingerprint("cursor"),
    }
    assert of_data(FILE)["name"] == digest("file-name", "x.txt")
    assert of_event({"type": "text", "text": "private"}) == {"text": digest("text", "private")}
    assert of_sent({"message": "private", "grant": "g"}) == {
        "message": digest("message", "private"),
        "grant": fingerprint("g"),
    }


@pytest.mark.parametrize(
    "data",
    [
        {"actorId": "two words"},
        {"conversationId": ["private words"]},
        {"prompt": "private words"},
        {"private words": 1},
        {"mcp": {"destination": "https://h/?private=words"}},
        {"mcp": "private words"},
        {"status": "x" * 129},
        {"items": [{"text": {"private": "words"}}]},
        {"items": "private words"},
        "private words",
        ["private words"],
    ],
)
def test_what_has_another_form_is_never_written_down(data: object) -> None:
    for told in (of_data(data), of_event(data), of_error(data), of_sent(data)):
        text = json.dumps(told)
        assert "words" not in text
        assert "x" * 129 not in text


def test_an_event_has_its_tool_call_under_one_name() -> None:
    event = {"type": "tool_call", "name": "catalog_get", "id": "call_1"}
    assert of_event(event) == {"name": "catalog_get", "toolCallId": "call_1"}


def test_of_an_error_only_its_extra_facts_are_kept() -> None:
    error = {"code": "X", "message": "private", "reason": "org_spend", "maxBytes": 5, "acceptedTypes": ["image/png"]}
    assert of_error(error) == {"reason": "org_spend", "maxBytes": 5, "acceptedTypes": ("image/png",)}


def test_a_long_list_is_one_digest() -> None:
    told = of_data({"items": [ITEM] * (MOST_LISTED + 1)})
    assert told["items"]["kind"] == "list"


@given(JSON)
def test_nothing_raises_and_all_can_be_written(value: object) -> None:
    for told in (of_data(value), of_event(value), of_error(value), of_sent(value)):
        json.dumps(told, allow_nan=False)


def test_nothing_is_nothing() -> None:
    assert of_data(None) == {}
    assert of_data("x") == {UNKNOWN: digest("value", "x")}
