"""What the tour of the partner leg needs, from what `lab serve store` and `lab serve partner` print as LAB_… variables.

    python docker/tour.py FOLDER --inside API ISSUER --here API STORE ISSUER FAULTS

Writes two private files below FOLDER: the one by which the driver finds a partner API (FX-017), with the addresses
`--inside`, and variables for a person's shell, with the addresses `--here`. Addresses are HOST:PORT. Prints how that
person goes on; that text holds no secret.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

from lab.clock import timestamp
from lab.commands.up import QUESTION
from lab.partner.client.fixture_output import FIXTURE_OUTPUT
from lab.partner.model.settings import FIXTURE_SECONDS
from lab.private_files import replace_private
from lab.store.server import PATH
from lab.store.settings import CANONICAL_DESTINATION
from lab.up.files import write_shell
from lab.up.key_files import EMPLOYEE
from lab.up.tour import tour_text

NEXT = """
It works. Yours to write against, on this machine, until you end it:

  partner API       {api}
  its OpenAPI file  http://{origin}/openapi.json
  store (MCP)       http://{store}{path}
  grant issuer      http://{issuer}/grants   (for tests only)
  fault API         http://{faults}   (as Toxiproxy's)

The same turn by hand; `docker compose logs --no-log-prefix tour` shows it to be copied.

# 0  the keys, for you alone
(umask 077; docker compose exec -T partner cat {shell} > {name})

{tour}
# break and heal what is between: here the way to the store is slow, and then there is none to the partner API
curl -sS $FAULTS_URL/proxies/store/toxics -d '{{"name": "slow", "type": "latency", "attributes": {{"latency": 800}}}}'
curl -sS -X DELETE $FAULTS_URL/proxies/store/toxics/slow
curl -sS $FAULTS_URL/proxies/partner_api -d '{{"enabled": false}}'
curl -sS $FAULTS_URL/proxies/partner_api -d '{{"enabled": true}}'
"""


def driver_file(told: Mapping[str, str], inside: list[str], now_ms: int) -> str:
    """The private output file of a fixture, for the driver of a run that begins now."""
    api, issuer = inside
    members = {
        "apiOrigin": f"http://{api}",
        "organizationId": told["LAB_ORGANIZATION_ID"],
        "namespace": "lab",
        "environment": "test",
        "provisioningKey": told["LAB_PARTNER_PROVISIONING_KEY"],
        "chatKey": told["LAB_PARTNER_CHAT_KEY"],
        "destination": CANONICAL_DESTINATION,
        "staticCredential": told["LAB_STORE_CREDENTIAL"],
        "expiresAt": timestamp(now_ms + round(FIXTURE_SECONDS * 1000)),
        "agentId": told["LAB_AGENT_ID"],
        "externalTeamId": told["LAB_PARTNER_TEAM"],
        "grantIssuerUrl": f"http://{issuer}/grants",
        "grantIssuerKey": told["LAB_GRANT_ISSUER_KEY"],
        "registerUrl": f"http://{issuer}/conversations",
        "registerKey": told["LAB_GRANT_REGISTER_KEY"],
    }
    return json.dumps(members, indent=2) + "\n"


def shell_variables(told: Mapping[str, str], here: list[str]) -> Mapping[str, str]:
    """The variables that the tour's commands use."""
    api, store, issuer, faults = here
    return {
        "API": f"http://{api}/v1/orgs/{told['LAB_ORGANIZATION_ID']}/chat",
        "CHAT_KEY": told["LAB_PARTNER_CHAT_KEY"],
        "EMPLOYEE": EMPLOYEE,
        "TEAM": told["LAB_PARTNER_TEAM"],
        "AGENT": told["LAB_AGENT_ID"],
        "DESTINATION": CANONICAL_DESTINATION,
        "ISSUER_URL": f"http://{issuer}/grants",
        "ISSUER_KEY": told["LAB_GRANT_ISSUER_KEY"],
        "REGISTER_URL": f"http://{issuer}/conversations",
        "REGISTER_KEY": told["LAB_GRANT_REGISTER_KEY"],
        "STORE_URL": f"http://{store}{PATH}",
        "STORE_CREDENTIAL": told["LAB_STORE_CREDENTIAL"],
        "CONTROL_URL": f"http://{api}/__lab",
        "CONTROL_KEY": told["LAB_PARTNER_CONTROL_KEY"],
        "FAULTS_URL": f"http://{faults}",
    }


def main() -> None:
    """Write both files and print the text."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--inside", nargs=2, required=True)
    parser.add_argument("--here", nargs=4, required=True)
    given = parser.parse_args()
    replace_private(given.folder / FIXTURE_OUTPUT, driver_file(os.environ, given.inside, time.time_ns() // 1_000_000))
    variables = shell_variables(os.environ, given.here)
    written = write_shell(given.folder, variables)
    api, store, issuer, faults = given.here
    print(
        NEXT.format(
            api=variables["API"],
            origin=api,
            store=store,
            path=PATH,
            issuer=issuer,
            faults=faults,
            shell=written,
            name=written.name,
            tour=tour_text(Path(written.name), QUESTION),
        )
    )


main()
