"""The judges' own words for routes."""

from __future__ import annotations

import pytest

from lab.laws.partner.words import operation


@pytest.mark.parametrize(
    ("route", "word"),
    [
        ("PUT /memberships", "membership"),
        ("POST /conversations", "create"),
        ("POST conversations", "register"),
        ("POST grants", "grant"),
        ("GET /conversations/{conversationId}/context", "context"),
        ("PUT /conversations/:conversationId/context", "bind"),
        ("GET /conversations/{c}/runs/{r}/events", "events"),
        ("GET /conversations/{c}/attachments/{a}/content", "file"),
        ("POST /__lab/clock", "control"),
        ("DELETE /conversations/{c}", "unknown"),
    ],
)
def test_a_route_by_its_template(route: str, word: str) -> None:
    assert operation(route) == word
