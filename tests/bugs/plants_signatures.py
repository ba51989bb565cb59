"""Slips of a Local Agent in verifying signatures."""

from __future__ import annotations

import json

from lab.protocol import signing
from lab.protocol.agent_side import AgentConnection
from lab.protocol.signing import Verifier
from lab.protocol.wire import encode
from tests.bugs.on_wire import Members, change_written
from tests.bugs.plants import Function, Patch, plant


def _pass_refused(patch: Patch, passes: Function) -> None:
    """Let a frame pass that the verifier refuses, where `passes(verifier, members, code)` says so."""

    def make(original: Function) -> Function:
        def refusal(self: Verifier, members: Members, wall_now_ms: int, nonce_once: bool = True) -> str | None:
            code: str | None = original(self, members, wall_now_ms, nonce_once)
            if code is not None and passes(self, members, wall_now_ms):
                patch.slipped()
                return None
            return code

        return refusal

    patch.wrap(Verifier, "refusal", make)


def _sound(verifier: Verifier, members: Members) -> bool:
    """Whether the signature itself verifies, whatever it is bound to."""
    return verifier._verifies(members, members["sig"])


@plant("agent-signature-present-is-enough", scenario="forged-signature", law="signature-refusal")
def signature_present_is_enough(patch: Patch) -> None:
    _pass_refused(patch, lambda *_: True)


@plant("agent-ready-not-verified", scenario="forged-ready", law="signature-refusal")
def ready_not_verified(patch: Patch) -> None:
    _pass_refused(patch, lambda _verifier, members, _now: members["type"] == "ready")


@plant("agent-params-not-compared", scenario="params-differ", law="signature-refusal")
def params_not_compared(patch: Patch) -> None:
    _pass_refused(
        patch,
        lambda verifier, members, _now: (
            not signing.params_equal(members["paramsRaw"], members["payload"]) and _sound(verifier, members)
        ),
    )


@plant("agent-params-duplicate-keys", scenario="params-twice", law="signature-refusal")
def params_duplicate_keys(patch: Patch) -> None:
    _pass_refused(
        patch,
        lambda verifier, members, _now: (
            json.loads(members["paramsRaw"]) == members["payload"] and _sound(verifier, members)
        ),
    )


@plant("agent-signature-of-other-tenant", scenario="sig-of-other-tenant", law="signature-refusal")
def signature_of_other_tenant(patch: Patch) -> None:
    _pass_refused(
        patch,
        lambda verifier, members, _now: members["sig"]["tenantId"] != members["tenantId"] and _sound(verifier, members),
    )


@plant("agent-signature-of-other-workspace", scenario="sig-of-other-workspace", law="signature-refusal")
def signature_of_other_workspace(patch: Patch) -> None:
    _pass_refused(
        patch,
        lambda verifier, members, _now: (
            members["sig"]["workspaceId"] != members["workspaceId"] and _sound(verifier, members)
        ),
    )


@plant("agent-nonce-not-kept", scenario="nonce-again", law="signature-refusal")
def nonce_not_kept(patch: Patch) -> None:
    _pass_refused(patch, lambda verifier, members, _now: members["sig"]["nonce"] in verifier._nonces)


@plant("agent-signature-age-unchecked", scenario="old-signature", law="signature-refusal")
def signature_age_unchecked(patch: Patch) -> None:
    _pass_refused(patch, lambda _verifier, members, now: abs(now - members["sig"]["timestamp"]) > 60_000)


@plant("agent-signature-from-the-future", scenario="early-signature", law="signature-refusal")
def signature_from_the_future(patch: Patch) -> None:
    _pass_refused(patch, lambda _verifier, members, now: now - members["sig"]["timestamp"] < -60_000)


def _refuse_passed(patch: Patch, refuses: Function) -> None:
    """Refuse a frame that the verifier lets pass, with the code that `refuses(verifier, members)` gives."""

    def make(original: Function) -> Function:
        def refusal(self: Verifier, members: Members, wall_now_ms: int, nonce_once: bool = True) -> str | None:
            code: str | None = original(self, members, wall_now_ms, nonce_once)
            if code is None:
                code = refuses(self, members)
                if code is not None:
                    patch.slipped()
            return code

        return refusal

    patch.wrap(Verifier, "refusal", make)


@plant("agent-signature-over-payload", scenario="params-spaced", law="refusals")
def signature_over_payload(patch: Patch) -> None:
    def refuses(verifier: Verifier, members: Members) -> str | None:
        again = {**members, "paramsRaw": encode(members["payload"])}
        return None if verifier._verifies(again, again["sig"]) else "unauthorized"

    _refuse_passed(patch, refuses)


@plant("agent-params-compared-as-text", scenario="payload-turned-round", law="refusals")
def params_compared_as_text(patch: Patch) -> None:
    def refuses(_verifier: Verifier, members: Members) -> str | None:
        return None if encode(members["payload"]) == members["paramsRaw"] else "params_mismatch"

    _refuse_passed(patch, refuses)


@plant("agent-first-key-only", scenario="second-key", law="refusals")
def first_key_only(patch: Patch) -> None:
    def refuses(verifier: Verifier, members: Members) -> str | None:
        first = next(iter(verifier._trusted))
        return None if members["sig"]["keyId"] == first else "unauthorized"

    _refuse_passed(patch, refuses)


@plant("agent-warn-refuses", scenario="warn-forged", law="signature-refusal")
def warn_refuses(patch: Patch) -> None:
    def make(original: Function) -> Function:
        def check(self: AgentConnection, members: Members, now: float) -> str | None:
            code: str | None = original(self, members, now)
            if code is None and members["type"] == "job.assign":
                code = self._verifier.refusal(members, self._wall_ms(now), nonce_once=False)
                if code is not None:
                    patch.slipped()
            return code

        return check

    patch.wrap(AgentConnection, "_check_signature", make)


@plant("agent-signature-mode-constant", scenario="warn-forged", law="signature-refusal")
def signature_mode_constant(patch: Patch) -> None:
    def change(members: Members) -> bool:
        if members.get("type") not in ("register", "hello"):
            return False
        members["payload"]["signatureMode"] = "enforce"
        return True

    change_written(patch, change)


@plant("agent-bad-signature-counts", scenario="forged-signature", law="resume-rules")
def bad_signature_counts(patch: Patch) -> None:
    def make(original: Function) -> Function:
        def check(self: AgentConnection, members: Members, now: float) -> str | None:
            code: str | None = original(self, members, now)
            inbound = self.session.inbound
            if code is not None and members["seq"] == inbound.last_seq + 1:
                patch.slipped()
                inbound.received(members["seq"], members["msgId"])
            return code

        return check

    patch.wrap(AgentConnection, "_check_signature", make)
