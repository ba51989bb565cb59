from __future__ import annotations

from dataclasses import replace

import pytest

from lab.store.exchange import Delivery, Ending, HttpRequest

ORDINARY = Delivery(200, chunks=(b"{}",), length=2)


def test_headers_are_found_in_any_case_and_in_their_order() -> None:
    request = HttpRequest("POST", (("Accept", " a "), ("ACCEPT", "b"), ("Host", " here ")))
    assert list(request.all("accept")) == [" a ", "b"]
    assert request.one("HOST") == "here"
    assert request.one("Accept") is None
    assert request.one("Origin") is None
    assert list(request.all("Origin")) == []


@pytest.mark.parametrize(
    "other",
    [
        {"status": 0},
        {"streamed": True},
        {"length": 3},
        {"chunks": ()},
        {"chunks": (b"{", b"}")},
        *({"ending": ending} for ending in Ending if ending is not Ending.WHOLE),
    ],
)
def test_only_an_ordinary_answer_has_a_whole_body(other: dict[str, object]) -> None:
    assert ORDINARY.whole_body == b"{}"
    assert replace(ORDINARY, **other).whole_body is None  # type: ignore[arg-type]
