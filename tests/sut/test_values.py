"""The texts that placeholders stand for."""

from __future__ import annotations

import base64
import json

import pytest

from lab.sut.values import PLACEHOLDERS
from tests.sut.values import VALUES


def test_every_placeholder_but_home_has_a_text() -> None:
    assert (*VALUES.texts(), "home") == PLACEHOLDERS


@pytest.mark.req("SG-021")
def test_trusted_keys_are_key_ids_with_raw_keys_in_base64() -> None:
    pairs = [pair.partition("=")[::2] for pair in VALUES.texts()["trusted_keys"].split(",")]
    assert [(name, base64.b64decode(key, validate=True)) for name, key in pairs] == [
        ("k1", bytes(32)),
        ("k2", b"\x01" * 32),
    ]


def test_workspaces_are_a_json_list() -> None:
    assert json.loads(VALUES.texts()["workspaces"]) == [
        {"workspaceId": "33333333-3333-4333-8333-333333333333", "path": "/work space"}
    ]


@pytest.mark.req("SEC-015")
def test_the_repr_shows_no_token() -> None:
    assert not any(secret in repr(VALUES) for secret in VALUES.secrets())
    assert VALUES.secrets() == (VALUES.gateway_token, VALUES.agent2_token)
