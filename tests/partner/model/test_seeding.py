from __future__ import annotations

from pathlib import Path

import pytest

from tests.partner.model.calls import STORE, running


@pytest.mark.req("FX-026")
async def test_what_a_former_life_changed_is_not_provisioned_again(tmp_path: Path) -> None:
    async with running(state_path=tmp_path / "state.db") as api:
        member = (await api.member()).data
        api.server.controls.configure_agent("agent-none", (STORE,), profile=True)
        api.server.controls.remove("agent", "agent-plain")
        rotated = api.server.controls.rotate_key("chat")
        api.server.controls.revoke_key("provisioning")
        await api.server.crash()
        await api.server.start()
        assert api.server.keys.chat == rotated
        assert (await api.member()).data["teamId"] == member["teamId"]
        assert (await api.conversation("agent-none")).status == 201
        assert (await api.conversation("agent-plain")).refusal == (404, "CHAT_UNAVAILABLE")
        revoked = await api.member(key=api.server.keys.provisioning)
        assert revoked.refusal == (401, "CREDENTIAL_REJECTED")


@pytest.mark.req("FX-047", "PA-003")
async def test_the_two_keys_have_the_scopes_that_are_due() -> None:
    async with running() as api:
        rows = api.server.core.parts.state.rows("SELECT role, scopes FROM keys ORDER BY role")
        scopes = {row["role"]: row["scopes"].split() for row in rows}
        assert scopes["chat"] == ["chat:membership", "chat:create", "chat:context", "chat:run", "chat:read"]
        assert not any(scope.startswith("chat:") for scope in scopes["provisioning"])
