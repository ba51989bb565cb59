import pytest

from lab.partner.client.history_walk import HistoryWalk, Item, Page, TextPart, ToolPart, page_untrusted
from lab.partner.client.members import BadShape
from tests.partner.samples import FILE, ITEM, NOW

PARTS = [
    {"type": "text", "text": "Looking it up."},
    {"type": "tool_call", "toolCallId": "call_1", "name": "catalog_get", "status": "failed"},
    {"type": "text", "text": "\n\nIt is blue. "},
]


def item(number: int = 1, **members: object) -> Item:
    data = {**ITEM, "id": f"i{number}", "role": "assistant", **members}
    return page_untrusted({"items": [data], "nextCursor": None}).items[0]


def page(cursor: str | None, *numbers: int) -> Page:
    return Page(tuple(item(number) for number in numbers), cursor)


@pytest.mark.req("HIS-003", "HIS-006", "HIS-009", "HIS-010", "HIS-018")
def test_an_item_with_its_parts_and_files() -> None:
    told = item(parts=PARTS, attachments=[FILE])
    assert told.parts == (
        TextPart("Looking it up."),
        ToolPart("call_1", "catalog_get", "failed"),
        TextPart("\n\nIt is blue. "),
    )
    assert told.attachments[0].mime_type == "text/plain"
    assert "blue" not in repr(told)


@pytest.mark.req("HIS-014", "HIS-015", "HIS-016", "HIS-020")
@pytest.mark.parametrize(
    ("status", "answer", "progress"),
    [
        ("completed", "\n\nIt is blue. ", ("Looking it up.",)),
        ("limited", "", ("Looking it up.", "\n\nIt is blue. ")),
        ("interrupted", "", ("Looking it up.", "\n\nIt is blue. ")),
    ],
)
def test_what_is_an_answer_depends_on_the_run(status: str, answer: str, progress: tuple[str, ...]) -> None:
    told = item(parts=PARTS)
    assert (told.answer(status), told.progress(status)) == (answer, progress)


@pytest.mark.req("HIS-021")
def test_a_legacy_item_is_one_block_of_its_text() -> None:
    told = item(text="One.\n\nTwo.")
    assert told.parts is None
    assert told.blocks() == ("One.\n\nTwo.",)
    assert told.answer("completed") == "One.\n\nTwo."


def test_an_answer_of_tools_alone_is_empty() -> None:
    assert item(parts=PARTS[1:2]).answer("completed") == ""


@pytest.mark.req("HIS-026")
@pytest.mark.parametrize("end", [{"nextCursor": None}, {"nextCursor": ""}, {}])
def test_a_walk_ends_where_no_cursor_is(end: dict[str, object]) -> None:
    walk = HistoryWalk()
    assert walk.take(page("c1", 1, 2)) == "c1"
    assert walk.take(page_untrusted({"items": [], **end})) is None
    assert (walk.end, walk.pages, [one.id for one in walk.items], walk.duplicates) == ("end", 2, ["i1", "i2"], [])


@pytest.mark.req("HIS-036")
def test_a_walk_ends_at_a_repeated_cursor_and_tells_duplicates() -> None:
    walk = HistoryWalk()
    assert walk.take(page("c1", 1)) == "c1"
    assert walk.take(page("c2", 2)) == "c2"
    assert walk.take(page("c1", 1, 3)) is None
    assert (walk.end, walk.duplicates) == ("repeated-cursor", ["i1"])


@pytest.mark.req("HIS-036")
def test_a_walk_ends_at_its_page_limit() -> None:
    walk = HistoryWalk(most_pages=2)
    assert walk.take(page("c1", 1)) == "c1"
    assert walk.take(page("c2", 2)) is None
    assert walk.end == "page-limit"


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"items": {}},
        {"items": [1]},
        {"items": [], "nextCursor": 1},
        {"items": [{**ITEM, "role": 1}]},
        {"items": [{**ITEM, "role": "user", "attachments": None}]},
        {"items": [{**ITEM, "role": "user", "createdAt": "soon"}]},
        {"items": [{**ITEM, "role": "user", "parts": "x"}]},
        {"items": [{**ITEM, "role": "user", "parts": [1]}]},
        {"items": [{**ITEM, "role": "user", "parts": [{"type": "video"}]}]},
        {"items": [{**ITEM, "role": "user", "parts": [{"type": "text", "text": None}]}]},
    ],
)
def test_what_is_no_page(data: object) -> None:
    with pytest.raises(BadShape):
        page_untrusted(data)


def test_times_of_items_are_instants() -> None:
    assert item().created_at.text == NOW
