"""What the lab can do to the model that no caller of the contract can (PA-055)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from lab.errors import UsageError
from lab.journal.partner_events import PartnerRequest
from lab.partner.model.authority import Conversation
from lab.partner.model.budget import set_spent
from lab.partner.model.conversations import stored_candidates
from lab.partner.model.core import PartnerCore
from lab.partner.model.legacy import seed_history
from lab.partner.model.memberships import store_membership, stored_membership
from lab.partner.model.removal import KINDS, THREAD, remove
from lab.partner.model.runs import find_run
from lab.partner.model.seeding import add_key
from lab.partner.model.settings import McpCandidate
from lab.partner.model.turns import TurnRunner
from lab.partner.model.words import LAB_BASE

COUNTED: Final = (
    "identities",
    "memberships",
    "conversations",
    "receipts",
    "runs",
    "events",
    "items",
    "attachments",
    "billing",
    "tombstones",
)


class Controls:
    """The lab's grip on one life of a model. What names a thing that is not there raises `UsageError`."""

    def __init__(self, core: PartnerCore, turns: TurnRunner, keys_changed: Callable[[], None]) -> None:
        self._core = core
        self._parts = core.parts
        self._state = core.parts.state
        self._turns = turns
        self._keys_changed = keys_changed

    def move_clock(self, by_ms: int) -> int:
        """Set the wall clock ahead, or back for a negative number; what it reads then. Monotonic stages do not move."""
        self._parts.clock.move(by_ms)
        self._tell("clock", None, {"byMs": by_ms})
        self._parts.bell.ring()
        return self._parts.now_ms()

    def seed_key(self, role: str, scopes: Sequence[str], namespace: str | None = None) -> str:
        """A further key under a role of its own (PA-002, PA-053, FX-047); what bears it is returned."""
        if self._state.row("SELECT 1 FROM keys WHERE role = ?", role) is not None:
            raise UsageError("There is a key of this role already. Give another role, or rotate it.")
        key = self._core.key_draws.token()
        add_key(self._state, role, key, scopes, namespace or self._parts.settings.namespace)
        return key

    def rotate_key(self, role: str) -> str:
        """A new value for the key of a role; the old one counts no more (PA-054). Runs go on, its streams close."""
        row = self._state.row("SELECT * FROM keys WHERE role = ? AND revoked = 0", role)
        if row is None:
            raise _missing("key of this role")
        key = self._core.key_draws.token()
        self._core.keyring.rotate(role, key)
        with self._state.transaction():
            self._state.run("UPDATE keys SET revoked = 1 WHERE role = ?", role)
            add_key(self._state, role, key, str(row["scopes"]).split(), row["namespace"])
        self._keys_changed()
        self._tell("keys/rotate", None, {"role": role})
        self._parts.bell.ring()
        return key

    def revoke_key(self, role: str) -> None:
        """No key of the role counts any more (PA-036): its runs end at their next check."""
        if self._state.run("UPDATE keys SET revoked = 1 WHERE role = ? AND revoked = 0", role) == 0:
            raise _missing("key of this role")
        self._tell("keys/revoke", None, {"role": role})
        self._parts.bell.ring()

    def revoke_binding(self, conversation_id: str) -> None:
        """The store context stays denied from now on (CX-007, CX-021)."""
        self._conversation(conversation_id)
        self._state.run(
            "INSERT INTO bindings (conversation_id, version, revoked) VALUES (?, 0, 1) "
            "ON CONFLICT (conversation_id) DO UPDATE SET revoked = 1, sealed_grant = NULL",
            conversation_id,
        )
        self._tell("bindings/revoke", conversation_id, {})
        self._parts.bell.ring()

    def revoke_identity(self, external_user_id: str, namespace: str | None = None) -> None:
        """All memberships of the employee end as by a confirmation with active false."""
        with self._state.transaction():
            actor_id = self._identity(external_user_id, namespace)
            for row in self._state.rows("SELECT team_id FROM memberships WHERE actor_id = ?", actor_id):
                held = stored_membership(self._parts, actor_id, row["team_id"])
                if held is not None and held.active:
                    revoked = replace(held, active=False, valid_until_ms=None, version=held.version + 1)
                    store_membership(self._parts, actor_id, row["team_id"], revoked)
        self._tell_identity("revoke", actor_id)

    def delete_identity(self, external_user_id: str, namespace: str | None = None) -> None:
        """The identity is gone and never comes back; its external id stays reserved (MB-015, MB-029)."""
        actor_id = self._identity(external_user_id, namespace)
        self._state.run(
            "UPDATE identities SET deleted = 1, subject_version = subject_version + 1 WHERE actor_id = ?", actor_id
        )
        self._tell_identity("delete", actor_id)

    def reset_identity(self, external_user_id: str, namespace: str | None = None) -> int:
        """A security reset: the subject epoch rises on all teams (MB-032); what it is then."""
        actor_id = self._identity(external_user_id, namespace)
        self._state.run("UPDATE identities SET subject_version = subject_version + 1 WHERE actor_id = ?", actor_id)
        return self._tell_identity("reset", actor_id)

    def remove(self, kind: str, id_: str) -> None:
        """Remove a thread, an agent or a team, with all that is stored in it (PA-026). A team goes by its teamId."""
        if kind not in KINDS:
            raise UsageError(f"Only these can be removed: {', '.join(KINDS)}.")
        if not remove(self._state, kind, id_, self._parts.now_ms()):
            raise _missing(kind)
        self._tell("removals", id_ if kind == THREAD else None, {"kind": kind, "id": id_})
        self._parts.bell.ring()

    def spend_budget(self, spent: bool) -> None:
        """The organization's budget is used up, or there is some again (PA-019, MSG-044)."""
        set_spent(self._state, spent)
        self._tell("budget", None, {"spent": spent})
        self._parts.bell.ring()

    def configure_agent(self, agent_id: str, candidates: Sequence[McpCandidate] | None, profile: bool) -> None:
        """What an operator changes of an agent: its admitted store servers, its profile (CV-016, CV-022)."""
        if not self._state.run(
            "UPDATE agents SET mcp = ?, profile = ? WHERE agent_id = ? AND removed = 0",
            stored_candidates(candidates),
            profile,
            agent_id,
        ):
            raise _missing("agent")
        servers = None if candidates is None else [candidate.server_id for candidate in candidates]
        self._tell("agents", None, {"agentId": agent_id, "servers": servers, "profile": profile})

    def set_guest(self, conversation_id: str, guest: bool, closed: bool) -> None:
        """Flag a conversation as a guest's, open or closed (PA-058, AT-023, AT-025)."""
        self._conversation(conversation_id)
        self._state.run(
            "UPDATE conversations SET guest = ?, closed = ? WHERE conversation_id = ?", guest, closed, conversation_id
        )
        self._tell("guest", conversation_id, {"guest": guest, "closed": closed})

    def seed_history(self, conversation_id: str, turns: int) -> Sequence[str]:
        """Completed runs from before journals and measurements; their run ids, oldest first (HIS-038)."""
        conversation = self._conversation(conversation_id)
        with self._state.transaction():
            return seed_history(self._parts, conversation, turns)

    def hold_queue(self, held: bool) -> None:
        """Accepted runs wait while the queue is held."""
        # Before a release, which lets runs begin.
        self._tell("queue", None, {"held": held})
        if held:
            self._turns.hold()
        else:
            self._turns.release()

    def cancel_run(self, run_id: str) -> None:
        """End an active run as cancelled (MSG-037)."""
        run = find_run(self._state, run_id)
        if run is None or run.over:
            raise _missing("active run")
        # Before its end, which comes of it.
        self._tell("runs/cancel", run.conversation_id, {"runId": run_id})
        if not self._turns.cancel(run_id):
            raise _missing("active run")

    def timing_lines(self) -> Sequence[str]:
        """The latest turn_timings lines of this life, oldest first (TM-052)."""
        return tuple(self._turns.lines)

    def counts(self) -> Mapping[str, int]:
        """How much of each is stored, what the turns have begun in this life (MSG-011), and how many go on."""
        stored = {name: self._state.count(f"SELECT COUNT(*) FROM {name}") for name in COUNTED}  # noqa: S608  our words
        return {**stored, **self._turns.counts(), "activeTurns": self._turns.active()}

    def _tell_identity(self, change: str, actor_id: str) -> int:
        """Tell of a change of an identity, also to those that wait; its subject epoch by now."""
        version = self._state.count("SELECT subject_version FROM identities WHERE actor_id = ?", actor_id)
        self._tell("identities", None, {"change": change, "actorId": actor_id, "subjectVersion": version})
        self._parts.bell.ring()
        return version

    def _tell(self, control: str, conversation_id: str | None, facts: Mapping[str, object]) -> None:
        """Whoever judges the journal must know of what moves the clock or takes a right away."""
        event = PartnerRequest("POST", f"{LAB_BASE}/{control}", 200, conversation_id=conversation_id, facts=facts)
        self._parts.ctx.journal.record(self._parts.name, event)

    def _conversation(self, conversation_id: str) -> Conversation:
        conversation = self._parts.authority.find_conversation(conversation_id)
        if conversation is None:
            raise _missing("conversation")
        return conversation

    def _identity(self, external_user_id: str, namespace: str | None) -> str:
        row = self._state.row(
            "SELECT actor_id FROM identities WHERE namespace = ? AND external_user_id = ? AND deleted = 0",
            namespace or self._parts.settings.namespace,
            external_user_id,
        )
        if row is None:
            raise _missing("identity")
        return str(row["actor_id"])


def _missing(what: str) -> UsageError:
    return UsageError(f"The model has no such {what}. Name one that exists now.")
