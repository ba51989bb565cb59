"""Schemathesis on the partner API's OpenAPI file, against the model: no undocumented answer, and no broken one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from lab.clock import timestamp
from tests.interop.environments import ROOT, Finished, python, run
from tests.partner.model.calls import DESTINATION, STORE, actor
from tests.partner.model.played import FIXTURES, Play, playing

DOCUMENT = ROOT / "contract" / "partner-chat" / "openapi.yaml"
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "missing_required_header",
    "unsupported_method",
    "ignored_auth",
)
SEED = 20261201
EXAMPLES = 30
ANSWERED = {
    "PUT /memberships": 200,
    "POST /conversations": 201,
    "GET /conversations/{conversationId}/context": 200,
    "PUT /conversations/{conversationId}/context": 200,
    "POST /conversations/{conversationId}/attachments": 201,
    "GET /conversations/{conversationId}/attachments/{attachmentId}/content": 200,
    "POST /conversations/{conversationId}/messages": 202,
    "GET /conversations/{conversationId}/messages": 200,
    "GET /conversations/{conversationId}/runs/{runId}": 200,
    "GET /conversations/{conversationId}/runs/{runId}/events": 200,
}

pytestmark = pytest.mark.timeout(180)


async def sow(play: Play) -> Mapping[str, Mapping[str, object]]:
    """Make what calls can name: a conversation with an ended run and a file, and another that waits for its context."""
    lease = timestamp(play.api.now_ms() + 200_000)
    ended, _ = await play.played()
    form = aiohttp.FormData(actor())
    form.add_field("file", BytesIO(b"a,b\n"), filename="a.csv", content_type="text/csv")
    attachment = (await play.api.call("POST", f"{play.path}/attachments", data=form)).data
    waiting = await play.api.opened("agent-mcp")
    context = {"conversationId": waiting, "serverId": STORE.server_id, "destination": DESTINATION}
    return {
        "all": {
            **actor(),
            "conversationId": play.conversation,
            "runId": ended["runId"],
            "attachmentId": attachment["id"],
            "agentId": "agent-plain",
        },
        # The employee of all other calls stays a member.
        "putMembership": {"externalUserId": "employee-9", "validUntil": lease},
        "bindContext": {**context, "expiresAt": lease, "expectedVersion": 0},
        "getContext": {"conversationId": waiting},
    }


async def fuzz(play: Play, folder: Path, document: Path, *more: str) -> tuple[Finished, set[tuple[str, int]]]:
    """What Schemathesis says of the model under this document, and which answers it got."""
    given = folder / "seeds.json"
    given.write_text(json.dumps(await sow(play)))
    before = len(play.api.journalled())
    done = await run(
        *(python("schemathesis").parent / "st", "run", document, "--url", play.api.base),
        *("--header", f"Authorization: Bearer {play.api.server.keys.chat}", "--checks", ",".join(CHECKS)),
        *("--phases", "coverage,fuzzing", "--max-examples", str(EXAMPLES), "--seed", str(SEED)),
        *("--generation-database", "none", "--request-timeout", "10", "--workers", "1", "--continue-on-failure"),
        *more,
        env={"SCHEMATHESIS_HOOKS": "tests.interop.partner_api.hooks", "INTEROP_SEEDS": str(given)},
    )
    return done, {(seen.route, seen.status) for seen in play.api.journalled()[before:]}


async def test_the_model_answers_as_its_document_says(tmp_path: Path) -> None:
    async with playing(tmp_path, FIXTURES / "hello.yaml", agent="agent-plain") as play:
        done, answered = await fuzz(play, tmp_path, DOCUMENT)
        assert done.status == 0, done.out[-6000:] + done.err[-2000:]
        assert "Tested: 10" in done.out
        assert answered >= {*ANSWERED.items(), *((route, 400) for route in ANSWERED), *((r, 401) for r in ANSWERED)}
        assert play.api.ctx.defects == []


def without_a_status(document: Any) -> None:
    del document["paths"]["/conversations/{conversationId}/runs/{runId}"]["get"]["responses"]["404"]


def with_another_type(document: Any) -> None:
    document["components"]["schemas"]["Run"]["properties"]["createdAt"] = {"type": "integer"}


@pytest.mark.parametrize(
    ("spoil", "said"), [(without_a_status, "Undocumented status code"), (with_another_type, "violates schema")]
)
async def test_a_document_that_the_model_does_not_keep_is_told(spoil: Any, said: str, tmp_path: Path) -> None:
    document = yaml.safe_load(DOCUMENT.read_text(encoding="utf-8"))
    spoil(document)
    spoiled = tmp_path / "openapi.yaml"
    spoiled.write_text(yaml.safe_dump(document))
    async with playing(tmp_path, FIXTURES / "hello.yaml", agent="agent-plain") as play:
        done, _ = await fuzz(play, tmp_path, spoiled, "--include-operation-id", "getRun")
        assert done.status == 1
        assert said in done.out, done.out
