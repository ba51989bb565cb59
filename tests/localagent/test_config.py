import base64
import json
from pathlib import Path

import pytest

from lab.errors import UsageError
from lab.localagent.config import Workspace, from_environment, truth

KEY = base64.b64encode(bytes(range(32))).decode()
GOOD = {
    "LAB_GATEWAY_WS_URL": "ws://127.0.0.1:4000/la",
    "LAB_GATEWAY_TOKEN": "canary-gateway",
    "LAB_AGENT2_URL": "http://127.0.0.1:5000/",
    "LAB_AGENT2_TOKEN": "canary-agent2",
    "LAB_TENANT_ID": "11111111-1111-1111-1111-111111111111",
    "LAB_AGENT_ID": " AAAAAAAA-1111-1111-1111-111111111111 ",
    "LAB_WORKSPACES": json.dumps([{"workspaceId": "ws-1", "path": "/srv/one"}]),
    "LAB_TRUSTED_KEYS": f"k1={KEY}, k2={KEY}",
    "LAB_STATE_DIR": "/srv/state",
}


def test_reads_a_whole_environment() -> None:
    config, warnings = from_environment(GOOD)
    assert warnings == []
    assert config.agent_id == "aaaaaaaa-1111-1111-1111-111111111111"
    assert config.agent2_url == "http://127.0.0.1:5000"
    assert config.workspaces == (Workspace("ws-1", "/srv/one"),)
    assert dict(config.trusted_keys) == {"k1": bytes(range(32)), "k2": bytes(range(32))}
    assert config.state_dir == Path("/srv/state")
    assert (config.signature_mode, config.chat, config.max_in_flight, config.handshake_ms) == (
        "enforce",
        False,
        8,
        10000,
    )


@pytest.mark.req("CHAT-031", "CHAT-036", "CHAT-070", "A2-018", "A2-043", "LA-021")
def test_defaults_that_the_documents_give_or_leave_open() -> None:
    config, _ = from_environment(GOOD)
    assert (config.stream_drain, config.stream_hold, config.polls) == (3.0, 8.0, 16)
    assert (config.request_timeout, config.stream_reconnects, config.cancel_wait) == (10.0, 5, 10.0)
    assert (config.stream_retry, config.stream_idle, config.job_timeout, config.queue) == (0.25, 0.0, 3600.0, 16)


@pytest.mark.req("SEC-015")
def test_no_repr_holds_a_token() -> None:
    assert "canary" not in repr(from_environment(GOOD)[0])


@pytest.mark.parametrize("name", sorted(GOOD))
def test_a_missing_variable_is_named(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} is not set. It must be "):
        from_environment({key: value for key, value in GOOD.items() if key != name})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LAB_GATEWAY_WS_URL", "http://canary"),
        ("LAB_GATEWAY_WS_URL", "ws://canary:99999"),
        ("LAB_AGENT2_URL", "canary"),
        ("LAB_AGENT2_URL", "http://user:canary@host"),
        ("LAB_TENANT_ID", "canary"),
        ("LAB_AGENT_ID", "canary"),
        ("LAB_WORKSPACES", "canary"),
        ("LAB_WORKSPACES", "[" * 100_000),
        ("LAB_WORKSPACES", "[]"),
        ("LAB_WORKSPACES", '[{"workspaceId": "canary", "path": "relative"}]'),
        ("LAB_WORKSPACES", '[{"workspaceId": "can ary", "path": "/a"}]'),
        ("LAB_WORKSPACES", '[{"workspaceId": "canary", "path": "/a", "more": 1}]'),
        ("LAB_WORKSPACES", '[{"workspaceId": "canary", "path": "/a"}, {"workspaceId": "canary", "path": "/b"}]'),
        ("LAB_TRUSTED_KEYS", "canary"),
        ("LAB_TRUSTED_KEYS", "canary=AAAA"),
        ("LAB_TRUSTED_KEYS", f"canary={KEY},canary={KEY}"),
        ("LAB_SIGNATURE_MODE", "canary"),
    ],
)
def test_a_malformed_variable_is_named_without_its_value(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"{name} is malformed. It must be ") as caught:
        from_environment(GOOD | {name: value})
    assert "canary" not in str(caught.value)


@pytest.mark.req("LA-001", "CHAT-063")
@pytest.mark.parametrize(
    ("word", "value", "warned"),
    [
        *[(word, True, False) for word in ("true", "1", "yes", "on", " TRUE ", "Yes")],
        *[(word, False, False) for word in ("", "  ", "false", "0", "no", "off", "OFF")],
        *[(word, False, True) for word in ("maybe", "2", "enabled")],
    ],
)
def test_truth_words(word: str, value: bool, warned: bool) -> None:
    warnings: list[str] = []
    assert truth({"X": word}, "X", warnings) is value
    assert bool(warnings) is warned


@pytest.mark.req("LA-005", "LA-006")
@pytest.mark.parametrize(
    ("name", "member", "text", "value", "warned"),
    [
        ("LOCAL_AGENT_V2_MAX_IN_FLIGHT", "max_in_flight", "1", 1, False),
        ("LOCAL_AGENT_V2_MAX_IN_FLIGHT", "max_in_flight", "0", 1, True),
        ("LOCAL_AGENT_V2_MAX_IN_FLIGHT", "max_in_flight", "64", 64, False),
        ("LOCAL_AGENT_V2_MAX_IN_FLIGHT", "max_in_flight", "99999999", 64, True),
        ("LOCAL_AGENT_V2_MAX_IN_FLIGHT", "max_in_flight", "many", 8, True),
        ("LOCAL_AGENT_V2_HANDSHAKE_MS", "handshake_ms", "999", 1000, True),
        ("LOCAL_AGENT_V2_HANDSHAKE_MS", "handshake_ms", "60001", 60000, True),
        ("LOCAL_AGENT_V2_HANDSHAKE_MS", "handshake_ms", "", 10000, False),
    ],
)
def test_clamps(name: str, member: str, text: str, value: int, warned: bool) -> None:
    config, warnings = from_environment(GOOD | {name: text})
    assert getattr(config, member) == value
    assert bool(warnings) is warned


def test_the_root_ref_is_the_path_digest_in_43_characters() -> None:
    workspace = Workspace("ws-1", "/srv/one")
    assert len(workspace.path_sha256) == 64
    assert base64.urlsafe_b64decode(workspace.root_ref + "=").hex() == workspace.path_sha256
