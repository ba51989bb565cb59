from __future__ import annotations

from pathlib import Path

import pytest

from lab.partner.model import words
from lab.partner.model.attachment_rules import (
    KIND_OF_TYPE,
    MAX_TEXT_CHARACTERS,
    SHORTENED_NOTICE,
    UNSENT_LIFE_MS,
    clean_name,
    has_lapsed,
    mime_type,
    text_for_model,
)


@pytest.mark.req("AT-004", "AT-006")
def test_eight_types_of_two_kinds() -> None:
    assert dict(KIND_OF_TYPE) == {
        "image/png": "image",
        "image/jpeg": "image",
        "image/gif": "image",
        "image/webp": "image",
        "text/plain": "text",
        "text/markdown": "text",
        "text/csv": "text",
        "application/json": "text",
    }


@pytest.mark.req("AT-037")
@pytest.mark.parametrize(
    ("content_type", "due"),
    [
        ("text/plain", "text/plain"),
        ("Text/Plain; charset=utf-8", "text/plain"),
        ("image/svg+xml", None),
        ("application/pdf", None),
        ("text/html", None),
        ("", None),
        (None, None),
    ],
)
def test_the_type_is_what_the_part_says(content_type: str | None, due: str | None) -> None:
    assert mime_type(content_type) == due


@pytest.mark.req("AT-038")
@pytest.mark.parametrize(
    ("filename", "due"),
    [
        ("../../x.txt", "x.txt"),
        ("C:\\folder\\y.csv", "y.csv"),
        ("a\x00\nb\x7f.png", "ab.png"),
        ("", "file"),
        (None, "file"),
        ("..", "file"),
        ("x/", "file"),
        ("é" * 300, "é" * 255),
    ],
)
def test_a_name_is_a_clean_base_name(filename: str | None, due: str) -> None:
    assert clean_name(filename) == due


@pytest.mark.req("AT-007", "AT-042")
def test_a_text_is_shortened_behind_20000_code_points() -> None:
    assert text_for_model(("é" * 20_000).encode()) == "é" * 20_000
    assert text_for_model(("😀" * 20_001).encode()) == "😀" * 20_000 + SHORTENED_NOTICE
    assert text_for_model(b"a\xffb") == "a\ufffdb"


@pytest.mark.req("AT-041")
def test_an_unsent_file_lives_for_an_hour() -> None:
    assert not has_lapsed(1000, 1000 + UNSENT_LIFE_MS)
    assert has_lapsed(1000, 1001 + UNSENT_LIFE_MS)


@pytest.mark.req("AT-003")
def test_types_and_limits_stand_in_one_place() -> None:
    """The words of the API: no route has a variation of its own."""
    literals = ("image/png", "text/markdown", "3 * 1024 * 1024", "3_145_728", "3145728")
    folder = Path(words.__file__).parent
    found = {file.name for file in folder.glob("*.py") if any(one in file.read_text("utf-8") for one in literals)}
    assert found == {"words.py"}
    assert (words.ATTACHMENT_BYTES, words.ATTACHMENTS_MAX, MAX_TEXT_CHARACTERS) == (3_145_728, 5, 20_000)
