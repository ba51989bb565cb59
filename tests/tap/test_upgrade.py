"""What an upgrade request says of itself."""

from __future__ import annotations

import pytest

from lab.tap.upgrade import credential, shown_path

TOKEN = "Ab3_" * 10


@pytest.mark.req("HS-002")
@pytest.mark.parametrize(
    ("headers", "due"),
    [
        ([], "none"),
        ([f"Bearer {TOKEN}"], "ok"),
        ([f"bearer   {TOKEN} "], "ok"),
        ([TOKEN], "unknown"),
        ([f"Basic {TOKEN}"], "unknown"),
        ([f"Bearer {TOKEN[:-1]}"], "unknown"),
        (["Bearer "], "unknown"),
        ([f"Bearer {TOKEN}", f"Bearer {TOKEN}"], "unknown"),
        (["Bearer \udcff"], "unknown"),
    ],
)
def test_what_came_as_a_credential(headers: list[str], due: str) -> None:
    assert credential(headers, TOKEN) == due


@pytest.mark.parametrize(
    ("target", "due"),
    [
        ("/agent", "/agent"),
        ("/v2/agents/connect?token=x", "/v2/agents/connect"),
        ("", ""),
        (f"/agent/{TOKEN}", "*"),
        ("/agent/Ab3", "*"),
        ("/a/b/c/d/e/f/g/h/i", "*"),
        ("/" + "a" * 25, "*"),
    ],
)
def test_a_path_that_may_hold_a_secret_is_not_shown(target: str, due: str) -> None:
    assert shown_path(target) == due
