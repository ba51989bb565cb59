import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.localagent.masking import MASK, mask

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIabc+/=\nq\n-----END RSA PRIVATE KEY-----"


@pytest.mark.req("CHAT-026", "CHAT-060")
@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Authorization: Bearer abcDEF123.456-7", f"Authorization: Bearer {MASK}"),
        ("key sk-abcdefghijklmnop1234 end", f"key {MASK} end"),
        ("ghp_abcdefghijklmnopqrst1234", MASK),
        ("AKIAIOSFODNN7EXAMPLE.", f"{MASK}."),
        ("password=hunter2 next", f"password={MASK} next"),
        ("PWD: hunter2; x", f"PWD: {MASK}; x"),
        ("api_key = 'abc'", f"api_key = '{MASK}'"),
        ('{"password":"hunter2","a":1}', f'{{"password":"{MASK}","a":1}}'),
        (r'{"text":"{\"password\": \"hunter2\"}"}', rf'{{"text":"{{\"password\": \"{MASK}\"}}"}}'),
        (f"a {PEM} b", f"a {MASK} b"),
        (f"a {PEM[:50]}", f"a {MASK}"),
    ],
)
def test_secrets_are_masked(text: str, masked: str) -> None:
    assert mask(text) == masked


@pytest.mark.req("CHAT-027")
@pytest.mark.parametrize(
    "text",
    ["", "a task-management-system for secrets", "the bearer of news", "sk-short", "passwords matter", "BEGIN PRIVATE"],
)
def test_other_text_stays(text: str) -> None:
    assert mask(text) == text


@pytest.mark.parametrize("secret", [PEM, PEM[:50], PEM[:45] + "\\", "Bearer abcdefgh12", "password=x", 'pwd="a"'])
@pytest.mark.parametrize("tail", ["", " tail", '"', "\\"])
def test_a_json_line_stays_a_json_line(secret: str, tail: str) -> None:
    inner = json.dumps({"x": f"before {secret}{tail}"})
    for line in (inner, json.dumps({"type": "text", "text": inner})):
        assert json.loads(mask(line)).keys() == json.loads(line).keys()


@given(st.text(), st.text())
def test_a_key_is_found_wherever_it_stands(before: str, after: str) -> None:
    assert "AKIAIOSFODNN7EXAMPLE" not in mask(f"{before} AKIAIOSFODNN7EXAMPLE {after}")


@pytest.mark.parametrize(
    "hostile",
    [
        "-----BEGIN PRIVATE KEY-----" * 40_000,
        "-----BEGIN " * 100_000,
        "-----BEGIN PRIVATE KEY-----" + "-----END " * 100_000,
        "-----BEGIN PRIVATE KEY-----" + "\\" * 1_000_000,
        "bearer " * 150_000,
        "bearer" + " " * 1_000_000,
        "sk-" * 300_000,
        "password" * 120_000,
        "password\\\\" * 100_000,
        "password=" + "a" * 1_000_000,
        "AKIA" * 250_000,
    ],
)
def test_hostile_text_takes_linear_time(hostile: str) -> None:
    """Quadratic patterns would need far longer than the test's time limit for these."""
    mask(hostile)
