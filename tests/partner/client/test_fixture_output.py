import json
from pathlib import Path
from typing import Any

import pytest

from lab.partner.client.fixture_output import (
    FIXTURE_OUTPUT,
    FixtureExpired,
    FixtureOutput,
    FixtureRefused,
    find_fixture_output,
    read_fixture_output,
)
from lab.partner.client.issuer import IssuerTarget
from lab.partner.client.settings import Target
from tests.partner.samples import DESTINATION

NOW_MS = 1_767_225_600_000
SECRETS = ("key-of-provisioning", "key-of-chat", "key-of-store", "key-of-issuer")
FILE: dict[str, Any] = {
    "apiOrigin": "http://127.0.0.1:3005",
    "organizationId": "org",
    "namespace": "ns",
    "environment": "test",
    "provisioningKey": SECRETS[0],
    "chatKey": SECRETS[1],
    "destination": DESTINATION,
    "staticCredential": SECRETS[2],
    "expiresAt": "2026-01-01T00:30:00.000Z",
}
ISSUER = {"grantIssuerUrl": "http://127.0.0.1:3006/issuer/grants", "grantIssuerKey": SECRETS[3]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "server-chat-fixture.json"


def put(path: Path, members: object, mode: int = 0o600) -> Path:
    path.write_text(members if isinstance(members, str) else json.dumps(members))
    path.chmod(mode)
    return path


def read(path: Path, members: object, mode: int = 0o600) -> FixtureOutput:
    return read_fixture_output(put(path, members, mode), NOW_MS)


@pytest.mark.req("FX-017", "FX-018", "FX-020", "GR-004", "FX-035")
def test_a_file_of_mock_mode(path: Path) -> None:
    more = {"instanceId": "i", "agentId": "a", "externalTeamId": "t", "toolName": "catalog_get", "toolInput": {}}
    told = read(path, {**FILE, **ISSUER, **more})
    assert told.issuer == IssuerTarget(ISSUER["grantIssuerUrl"], ISSUER["grantIssuerKey"])
    assert (told.instance_id, told.agent_id, told.external_team_id) == ("i", "a", "t")
    assert (told.organization_id, told.chat_key, told.destination) == ("org", SECRETS[1], DESTINATION)
    assert str(FIXTURE_OUTPUT) == ".orca/logs/server-chat-fixture.json"


def test_a_file_of_the_store_mode_names_no_issuer(path: Path) -> None:
    told = read(path, FILE)
    assert (told.issuer, told.instance_id, told.agent_id) == (None, None, None)


@pytest.mark.req("FX-018")
@pytest.mark.parametrize("name", sorted(FILE))
@pytest.mark.parametrize("value", [None, "", 5])
def test_a_file_without_a_required_member_is_refused(path: Path, name: str, value: object) -> None:
    members = {**FILE, name: value} if value is not None else {key: one for key, one in FILE.items() if key != name}
    with pytest.raises(FixtureRefused) as refused:
        read(path, members)
    assert name in str(refused.value)


@pytest.mark.req("FX-032")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o700 | 0o010])
def test_a_file_that_others_can_read_is_refused(path: Path, mode: int) -> None:
    with pytest.raises(FixtureRefused, match="0600"):
        read(path, FILE, mode)
    assert read(path, FILE, 0o400).namespace == "ns"


@pytest.mark.req("FX-019", "GR-020")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("chatKey", "provisioningKey"),
        ("chatKey", "staticCredential"),
        ("provisioningKey", "staticCredential"),
        ("chatKey", "grantIssuerKey"),
    ],
)
def test_equal_keys_are_refused(path: Path, one: str, other: str) -> None:
    members = {**FILE, **ISSUER}
    with pytest.raises(FixtureRefused, match="same key"):
        read(path, {**members, one: members[other]})


@pytest.mark.parametrize("key", ["two words", "é", "a\nb", "x" * 1025])
def test_a_key_that_no_header_can_bear_is_refused(path: Path, key: str) -> None:
    with pytest.raises(FixtureRefused, match="chatKey"):
        read(path, {**FILE, "chatKey": key})


@pytest.mark.req("FX-020")
@pytest.mark.parametrize("name", sorted(ISSUER))
def test_half_an_issuer_is_refused(path: Path, name: str) -> None:
    with pytest.raises(FixtureRefused, match="belong together"):
        read(path, {**FILE, name: ISSUER[name]})


@pytest.mark.req("FX-028", "FX-030")
@pytest.mark.parametrize(
    ("ends", "minutes"),
    [
        ({"expiresAt": "2026-01-01T00:30:00Z", "fixtureExpiresAt": "2026-01-01T00:20:00Z"}, 20),
        ({"expiresAt": "2026-01-01T00:10:00Z", "fixtureExpiresAt": "2026-01-01T00:20:00Z"}, 10),
        ({"expiresAt": "2026-01-01T00:30:00Z"}, 30),
        ({"expiresAt": None, "fixtureExpiresAt": "2026-01-01T00:20:00Z"}, 20),
    ],
)
def test_the_earlier_end_counts(path: Path, ends: dict[str, object], minutes: int) -> None:
    assert read(path, {**FILE, **ends}).ends_at_ms == NOW_MS + minutes * 60_000


def test_a_file_past_its_end_is_refused(path: Path) -> None:
    with pytest.raises(FixtureExpired, match="expired"):
        read(path, {**FILE, "expiresAt": "2026-01-01T00:00:00Z"})


@pytest.mark.req("FX-039")
def test_no_step_begins_in_the_last_minute(path: Path) -> None:
    told = read(path, FILE)
    assert told.has_time(NOW_MS + 29 * 60_000)
    assert not told.has_time(NOW_MS + 29 * 60_000 + 30_000)


@pytest.mark.req("FX-043")
@pytest.mark.parametrize("environment", ["production", "staging", "TEST"])
def test_only_a_test_environment_is_driven(path: Path, environment: str) -> None:
    with pytest.raises(FixtureRefused, match="environment"):
        read(path, {**FILE, "environment": environment})


def test_production_is_driven_when_that_is_allowed(path: Path) -> None:
    put(path, {**FILE, "environment": "production"})
    assert read_fixture_output(path, NOW_MS, allow_production=True).environment == "production"


@pytest.mark.req("FX-042")
@pytest.mark.parametrize(
    ("origin", "base"),
    [
        ("http://127.0.0.1:3005", "http://127.0.0.1:3005/v1/orgs/org/chat"),
        ("http://127.0.0.1:3005/", "http://127.0.0.1:3005/v1/orgs/org/chat"),
        ("https://api.example", "https://api.example/v1/orgs/org/chat"),
        ("http://[::1]:5", "http://[::1]:5/v1/orgs/org/chat"),
    ],
)
def test_the_base_is_joined_to_the_origin(path: Path, origin: str, base: str) -> None:
    told = read(path, {**FILE, "apiOrigin": origin})
    assert Target(told.api_origin, told.organization_id, told.chat_key).site.base == base


@pytest.mark.parametrize(
    "origin", ["ftp://h", "h:5", "http://h/v1", "http://u:p@h", "http://h?x", "http://h:99999", "http://", "http://[1"]
)
def test_what_is_no_origin_is_refused(path: Path, origin: str) -> None:
    with pytest.raises(FixtureRefused, match="apiOrigin"):
        read(path, {**FILE, "apiOrigin": origin})


@pytest.mark.parametrize("text", ["", "[]", "{", "5", "[" * 60_000])
def test_what_is_no_object_is_refused(path: Path, text: str) -> None:
    with pytest.raises(FixtureRefused, match="JSON object"):
        read(path, text)


def test_a_file_is_so_long_and_no_longer(path: Path) -> None:
    with pytest.raises(FixtureRefused, match="longer than"):
        read(path, {**FILE, "stray": "x" * 70_000})


@pytest.mark.req("FX-033")
def test_which_target_is_driven(path: Path) -> None:
    assert find_fixture_output(path, NOW_MS) == (None, "the lab's own partner API, as there is no fixture file")
    put(path, FILE)
    told, words = find_fixture_output(path, NOW_MS)
    assert told == read_fixture_output(path, NOW_MS)
    assert words == "the fixture at http://127.0.0.1:3005"
    expired, words = find_fixture_output(path, NOW_MS + 31 * 60_000)
    assert expired is None
    assert "expired" in words
    path.chmod(0o644)
    with pytest.raises(FixtureRefused):
        find_fixture_output(path, NOW_MS)


@pytest.mark.req("PRIV-015")
def test_no_key_stands_in_a_repr_or_a_message(path: Path) -> None:
    told = read(path, {**FILE, **ISSUER})
    texts = [repr(told)]
    for members in ({"expiresAt": "soon"}, {"environment": "production"}, {"chatKey": SECRETS[0]}, {"apiOrigin": "x"}):
        with pytest.raises(FixtureRefused) as refused:
            read(path, {**FILE, **ISSUER, **members})
        texts.append(str(refused.value))
    assert not [secret for secret in SECRETS for text in texts if secret in text]
    assert sorted(told.secrets.values()) == sorted(SECRETS)
