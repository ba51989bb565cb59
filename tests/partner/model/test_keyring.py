from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.draws import Draws
from lab.errors import EnvironmentFault
from lab.partner.model.keyring import open_keyring
from lab.partner.model.settings import GivenKeys

GIVEN = GivenKeys("chat", "provisioning", "control")


def draws(purpose: str = "keys") -> Draws:
    return Draws(1, "partner", purpose)


@pytest.mark.req("FX-019")
def test_drawn_keys_are_all_different() -> None:
    keyring = open_keyring(None, None, draws()).keyring
    assert len({keyring.chat, keyring.provisioning, keyring.control, keyring.seal_key}) == 4
    assert keyring.chat not in repr(keyring)


@pytest.mark.req("FX-026")
def test_a_keyring_beside_a_state_is_private_and_found_again(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    first = open_keyring(state, GIVEN, draws())
    assert first.keyring.chat == "chat"
    file = tmp_path / "state.db.keys"
    assert file.stat().st_mode & 0o777 == 0o600
    assert open_keyring(state, None, draws("later")).keyring == first.keyring
    first.rotate("chat", "chat-2")
    first.rotate("reader", "unknown here")
    assert open_keyring(state, GIVEN, draws()).keyring.chat == "chat-2"
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.db.keys"]


@pytest.mark.req("FX-026")
def test_without_a_state_each_start_has_keys_of_its_own() -> None:
    assert open_keyring(None, None, draws("1")).keyring != open_keyring(None, None, draws("2")).keyring


@pytest.mark.req("FX-032")
def test_a_keyring_that_others_can_read_or_that_is_none_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    open_keyring(state, GIVEN, draws())
    file = tmp_path / "state.db.keys"
    file.chmod(0o640)
    with pytest.raises(EnvironmentFault, match="0640"):
        open_keyring(state, None, draws())
    file.chmod(0o600)
    whole = json.loads(file.read_text())
    wrong = [
        whole | {name: value}
        for name, value in (
            *(("seal_key", seal_key) for seal_key in ("no hexadecimal", "00", "", 5, None, whole["seal_key"] + "00")),
            *((name, value) for name in ("chat", "provisioning", "control") for value in ("", 5, None)),
        )
    ]
    for text in ("{", "[]", '{"chat": "x"}', "[" * 100_000, *map(json.dumps, wrong)):
        file.write_text(text)
        with pytest.raises(EnvironmentFault, match="holds no keyring"):
            open_keyring(state, None, draws())
