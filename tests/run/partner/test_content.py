"""The bytes of a scenario's files."""

from __future__ import annotations

import pytest

from lab.run.partner.content import content_of
from lab.scenario.partner_model import AttachStep


def attach(type_: str = "text/plain", text: str | None = None, size: int | None = None) -> bytes:
    return content_of(AttachStep(1, None, "f1", "c1", type_, "a", text, size))


def test_a_text_is_its_bytes() -> None:
    assert attach(text="Größe") == "Größe".encode()
    assert attach(text="") == b""


@pytest.mark.parametrize("size", [0, 1, 7, 46, 1000, 3_000_000])
def test_a_size_is_exact(size: int) -> None:
    assert len(attach(size=size)) == size
    assert len(attach("image/png", size=size)) == size


def test_without_either_there_is_a_line() -> None:
    assert attach().endswith(b"\n")


@pytest.mark.parametrize(
    ("type_", "head"),
    [("image/png", b"\x89PNG"), ("image/jpeg", b"\xff\xd8\xff"), ("image/gif", b"GIF89a"), ("image/webp", b"RIFF")],
)
def test_an_image_begins_as_its_type_does(type_: str, head: bytes) -> None:
    assert attach(type_, size=100).startswith(head)
