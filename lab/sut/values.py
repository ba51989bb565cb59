"""What a run has to tell a program that it starts: the placeholders of a profile."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path


@dataclass(frozen=True)
class SutValues:
    """The values of a run for one Local Agent. Its repr shows no token."""

    gateway_ws_url: str
    gateway_token: str = field(repr=False)
    agent2_url: str
    agent2_token: str = field(repr=False)
    tenant_id: str
    agent_id: str
    workspaces: Mapping[str, Path]
    """Folder of each workspace by its workspaceId."""
    trusted_keys: Mapping[str, bytes]
    """Raw 32-byte Ed25519 public key of each signer by its keyId (SG-021)."""
    signature_mode: str
    free_port: int
    """A loopback port that nobody listens on, for a program that must be told its own."""
    python: str
    """The interpreter that runs the lab."""
    contract_dir: Path

    def secrets(self) -> tuple[str, ...]:
        """What no log may show (SEC-015)."""
        return (self.gateway_token, self.agent2_token)

    def texts(self) -> dict[str, str]:
        """Each placeholder's text, without `home`, which the profile decides."""
        texts = {member.name: str(getattr(self, member.name)) for member in fields(self)}
        texts["workspaces"] = json.dumps(
            [{"workspaceId": name, "path": str(path)} for name, path in self.workspaces.items()]
        )
        texts["trusted_keys"] = ",".join(
            f"{name}={base64.b64encode(key).decode()}" for name, key in self.trusted_keys.items()
        )
        return texts


PLACEHOLDERS = (*(member.name for member in fields(SutValues)), "home")
"""The words that a template may use in braces."""
