"""The model's secrets in clear: its API keys, the key of its controls and the key that seals grants.

With a state path they lie beside the state in a file of their own that its owner alone can read, so that a restart
keeps them (FX-026) and the state itself holds hashes and sealed grants only (PRIV-019, CX-035).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

from lab.draws import Draws
from lab.errors import EnvironmentFault
from lab.partner.model.settings import GivenKeys
from lab.partner.model.state import SEAL_KEY_BYTES
from lab.private_files import read_private, replace_private

CHAT_ROLE: Final = "chat"
PROVISIONING_ROLE: Final = "provisioning"


@dataclass(frozen=True, slots=True)
class Keyring:
    """The secrets of one instance. `seal_key` is hexadecimal."""

    chat: str = field(repr=False)
    provisioning: str = field(repr=False)
    control: str = field(repr=False)
    seal_key: str = field(repr=False)


class KeyringFile:
    """The keyring of a model: `path` None keeps it in memory."""

    def __init__(self, path: Path | None, keyring: Keyring) -> None:
        self._path = path
        self.keyring = keyring

    def rotate(self, role: str, key: str) -> None:
        """Put a fresh key in place of the chat or the provisioning key; keys of other roles are not kept here."""
        if role == CHAT_ROLE:
            self._keep(replace(self.keyring, chat=key))
        elif role == PROVISIONING_ROLE:
            self._keep(replace(self.keyring, provisioning=key))

    def save(self) -> None:
        """Write the file, if there is one."""
        if self._path is not None:
            replace_private(self._path, json.dumps(asdict(self.keyring)) + "\n")

    def _keep(self, keyring: Keyring) -> None:
        self.keyring = keyring
        self.save()


def open_keyring(state_path: Path | None, given: GivenKeys | None, draws: Draws) -> KeyringFile:
    """The keyring beside the state; else the given keys, else fresh ones (FX-026).

    A file that is no keyring raises `EnvironmentFault`.
    """
    path = None if state_path is None else state_path.with_name(f"{state_path.name}.keys")
    if path is not None and path.exists():
        return KeyringFile(path, _read(path))
    seal_key = draws.bytes(SEAL_KEY_BYTES).hex()
    draw: Callable[[], str] = draws.token
    keys = GivenKeys(draw(), draw(), draw()) if given is None else given
    opened = KeyringFile(path, Keyring(keys.chat, keys.provisioning, keys.control, seal_key))
    opened.save()
    return opened


def _read(path: Path) -> Keyring:
    try:
        keyring = Keyring(**json.loads(read_private(path)))
        if not all(isinstance(secret, str) and secret for secret in asdict(keyring).values()):
            raise ValueError("a secret is missing")
        if len(bytes.fromhex(keyring.seal_key)) != SEAL_KEY_BYTES:
            raise ValueError("the seal key is of another length")
        return keyring
    except (ValueError, TypeError, RecursionError) as error:
        raise EnvironmentFault(
            f"{path} holds no keyring of the model. Remove it together with the state, or name another state path."
        ) from error
