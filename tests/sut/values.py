"""The values of an imagined run."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from lab.sut.values import SutValues

VALUES = SutValues(
    gateway_ws_url="ws://127.0.0.1:4001/ws",
    gateway_token="gateway-token-of-the-run",
    agent2_url="http://127.0.0.1:4002",
    agent2_token="agent2-token-of-the-run",
    tenant_id="11111111-1111-4111-8111-111111111111",
    agent_id="22222222-2222-4222-8222-222222222222",
    workspaces={"33333333-3333-4333-8333-333333333333": Path("/work space")},
    trusted_keys={"k1": bytes(32), "k2": b"\x01" * 32},
    signature_mode="enforce",
    free_port=4003,
    python=sys.executable,
    contract_dir=Path("/contract"),
)


def with_token(token: str) -> SutValues:
    """The same with another gateway token."""
    return dataclasses.replace(VALUES, gateway_token=token)
