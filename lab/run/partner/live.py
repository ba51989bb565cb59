"""The gate before a live partner API: closed unless its operator's approval and a key of its own are given. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from lab.errors import NotApplicable, UsageError
from lab.partner.client.fixture_output import FixtureOutput

LIVE: Final = "LAB_PARTNER_LIVE"
APPROVED: Final = "APPROVED"
LIVE_KEY: Final = "LAB_PARTNER_LIVE_CHAT_KEY"


def live_key_of(variables: Mapping[str, str]) -> str | None:
    """The chat key that was approved for a live API (PA-033); None while no live API is asked for.

    Raises `UsageError` for an approval without a key.
    """
    given = variables.get(LIVE)
    if not given:
        return None
    if given != APPROVED:
        raise UsageError(f"{LIVE} is set to something else than {APPROVED}. Unset it, or write that.")
    key = variables.get(LIVE_KEY)
    if not key:
        raise UsageError(f"{LIVE}={APPROVED} needs {LIVE_KEY}: a key to which chat scopes were granted for this.")
    return key


def target_of(output: FixtureOutput, origin: str) -> str:
    """What a partner API that the lab does not start is: fixture-mock, fixture or live (PA-029)."""
    if output.environment == "production" or not is_near(origin):
        return "live"
    return "fixture" if output.issuer is None else "fixture-mock"


def is_near(origin: str) -> bool:
    """Whether an origin is of this machine or its own network: a private address, localhost, or a name without a dot.

    Containers of one compose file know each other by such names.
    """
    host = urlsplit(origin).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host
    return address.is_private or address.is_loopback


def admitted_key(output: FixtureOutput, origin: str, live_key: str | None) -> str:
    """The chat key to drive `origin` with.

    A live API raises `NotApplicable` without `live_key` (PA-034), and `UsageError` for a key that is the file's own or
    when its grants would have to be the lab's, which are for tests alone (GR-005).
    """
    if target_of(output, origin) != "live":
        return output.chat_key
    if live_key is None:
        raise NotApplicable(
            f"not applicable: {origin} is a live partner API, which stands behind its operator's gate and is skipped; "
            f"with approved chat scopes set {LIVE}={APPROVED} and {LIVE_KEY}"
        )
    if live_key in (output.chat_key, output.provisioning_key):
        raise UsageError(f"{LIVE_KEY} is a key of the fixture file; a live partner API needs one of its own.")
    if output.issuer is None:
        raise UsageError(
            f"{origin} is live and its file names no grant issuer; the lab's own is for tests alone. Name the store's."
        )
    return live_key
