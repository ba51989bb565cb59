"""The wire codes against the ledger's list: order, close code, fatal, retryable."""

from __future__ import annotations

import pytest

from lab.errors import ContractError
from lab.protocol.errors import ERROR_CODES, CloseCodes
from tests.protocol.sides import CONTRACT, error, outputs, ready_agent, ready_gateway

ORDER = [
    *("bad_frame", "unknown_type", "schema_violation", "frame_too_large", "payload_too_large", "wrong_direction"),
    *("handshake_violation", "not_ready", "seq_gap", "seq_replayed", "chunk_out_of_order", "chunk_inconsistent"),
    *("tenant_mismatch", "agent_mismatch", "params_mismatch", "signature_mode_insufficient", "clock_skew"),
    *("protocol_unsupported", "unauthorized", "agent_offline", "timeout", "rate_limited", "internal"),
]
NOT_FATAL = {"protocol_unsupported", "agent_offline", "rate_limited", "internal"}
RETRYABLE = {"agent_offline", "timeout", "rate_limited", "internal", "clock_skew", "not_ready"}
CODES = CloseCodes(CONTRACT.error_codes)


@pytest.mark.req("WS-039")
def test_order_of_the_codes() -> None:
    assert list(CONTRACT.error_codes) == ORDER
    assert set(ERROR_CODES) == set(ORDER)


@pytest.mark.req("WS-040", "WS-041")
@pytest.mark.parametrize(("position", "name"), list(enumerate(ORDER)))
def test_close_code_is_the_position(position: int, name: str) -> None:
    assert CODES.of(name) == 4400 + position
    assert CODES.name(4400 + position) == name


@pytest.mark.parametrize("close_code", [None, 0, 1000, 1006, 4399, 4423, 4499])
def test_other_close_codes_have_no_name(close_code: int | None) -> None:
    assert CODES.name(close_code) is None


@pytest.mark.req("WS-043", "WS-044")
@pytest.mark.parametrize("name", ORDER)
def test_fatal_and_retryable(name: str) -> None:
    row = ERROR_CODES[name]
    assert row.fatal is (name not in NOT_FATAL)
    assert row.retryable is (name in RETRYABLE)
    assert row.name == name
    assert row.doc


@pytest.mark.req("WS-042", "WS-043", "WS-086")
@pytest.mark.parametrize("name", ORDER)
def test_telling_a_code_writes_the_error_and_closes_if_fatal(name: str) -> None:
    for connection in (ready_gateway(), ready_agent()):
        connection.fail(name, 1)
        frames, close = outputs(connection)
        payload = {"code": name, "retryable": name in RETRYABLE}
        assert [(frame["type"], frame["seq"], frame["payload"]) for frame in frames] == [("error", 0, payload)]
        assert close == (None if name in NOT_FATAL else 4400 + ORDER.index(name))


@pytest.mark.req("WS-085")
@pytest.mark.parametrize("name", ORDER)
def test_error_from_the_peer_is_never_answered(name: str) -> None:
    for connection in (ready_gateway(), ready_agent()):
        connection.receive_untrusted(error(name), 1)
        frames, close = outputs(connection)
        assert frames == []
        assert close == (None if name in NOT_FATAL else 1000)


@pytest.mark.req("WS-039")
@pytest.mark.parametrize(
    "enum", [("bad_frame", "bad_frame"), tuple(ORDER[:-1]), (*ORDER, "more"), (*ORDER, "internal")]
)
def test_enum_that_differs_from_the_table_is_refused(enum: tuple[str, ...]) -> None:
    with pytest.raises(ContractError):
        CloseCodes(enum)
