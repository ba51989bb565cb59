"""What the agent's work hands over, held against the contract's schemas."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from lab.draws import Draws
from lab.localagent.config import Workspace
from lab.localagent.conversation import Turn, session_body
from lab.localagent.filelist import FileLists
from lab.localagent.frames import audit, progress
from lab.localagent.outcome import CANCELLED, failed, of_result
from lab.localagent.streams import Page, StreamBook, encode_page
from tests.localagent.doubles import JOB, TS, WORKSPACE

FOLDER = Path(__file__).parents[2] / "contract" / "la-protocol-v2"
SCHEMAS = [json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.schema.json"))]
REGISTRY: Registry[Any] = Registry().with_resources(
    [(schema["$id"], Resource.from_contents(schema)) for schema in SCHEMAS]
)
BASE = "https://schemas.visionhammer.io/la-protocol-v2/"
EVERYTHING = {
    "phase": "coding",
    "iteration": 1,
    "filesChanged": 2,
    "state": "waiting_approval",
    "terminal": False,
    "code": "x",
    "text": "a sentence",
    "runId": "r-1",
    "count": 2**60,
    "at": "yesterday",
    "actionType": "write_file",
}
RESULT = {
    "outcome": "pr_opened",
    "prUrl": "https://git.example/1",
    "branch": "b",
    "commitSha": "a" * 40,
    "tests": {"passed": 1, "failed": 2, "skipped": 3},
    "errorCode": "infra",
    "answer": "a sentence",
}


def problems(name: str, value: object, path: str = "") -> list[str]:
    validator = Draft202012Validator({"$ref": f"{BASE}{name}.schema.json{path}"}, registry=REGISTRY)
    return [error.message for error in validator.iter_errors(value)]


@pytest.mark.req("TY-014", "TY-015", "TY-016", "TY-018", "TY-027")
@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("job.event", progress(JOB, EVERYTHING)),
        ("job.event", progress(JOB, {"phase": "No Token", "iteration": -1, "state": 5})),
        ("job.result", of_result(RESULT, chat=False, most_files=0).payload(JOB)),
        ("job.result", of_result(RESULT, chat=True, most_files=3).payload(JOB)),
        ("job.result", failed("timeout").payload(JOB)),
        ("job.result", CANCELLED.payload(JOB)),
        ("audit.event", audit(JOB, EVERYTHING, TS)),
    ],
)
def test_payloads(name: str, payload: dict[str, object]) -> None:
    assert problems(name, payload, "#/properties/payload") == []


@pytest.mark.req("CHAT-032", "CHAT-034")
def test_the_body_of_a_stream() -> None:
    book = StreamBook(Draws(7, "agent", "cursors"))
    book.open(JOB, WORKSPACE, ["a"], closed=True)
    page = book.page(JOB)
    assert isinstance(page, Page)
    assert problems("job.stream.body", json.loads(encode_page(page))) == []
    assert problems("job.stream.body", json.loads(encode_page(book.empty_page(JOB)))) == []


@pytest.mark.req("CHAT-051", "CHAT-053")
def test_the_body_of_a_session() -> None:
    raw = session_body([Turn("user", TS, "x" * 70000)] * 1001)
    assert raw is not None
    assert problems("chat.session.body", json.loads(raw)) == []


def test_the_body_of_a_listing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    workspace = Workspace(WORKSPACE, str(tmp_path))
    answer = FileLists([workspace], Draws(7, "agent", "refs")).answer(workspace.root_ref, 2**21, WORKSPACE)
    assert problems("file.list.body", json.loads(answer.body)) == []
    assert problems("defs", workspace.root_ref, "#/$defs/opaqueRef") == []
