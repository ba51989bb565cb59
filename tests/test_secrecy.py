"""What the repository itself promises: no private file in it, and TLS validated by whoever is started."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.partner.client.fixture_output import FIXTURE_OUTPUT
from lab.store.fixture_input import FIXTURE_INPUT
from tests.command_line import ROOT

PRIVATE = (str(FIXTURE_OUTPUT), str(FIXTURE_INPUT), "runs/latest/journal.jsonl", ".orca/logs/anything")
PRIVATE_NAMES = {FIXTURE_OUTPUT.name, FIXTURE_INPUT.name}
KEYS = ('"chatKey"', '"provisioningKey"', '"staticCredential"')
UNVALIDATED = re.compile(
    r"NODE_TLS_REJECT_UNAUTHORIZED[\"']?\s*[:=]\s*[\"']?0|rejectUnauthorized\s*:\s*false|\bverify\s*=\s*False"
    r"|\bssl\s*=\s*False|\bCERT_NONE\b|_create_unverified_context|check_hostname\s*=\s*False|curl\s.*(\s-k\b|--insecure)"
)
SOURCES = (".py", ".mjs", ".js", ".ts", ".yaml", ".yml", ".sh", ".toml", ".md", ".j2")


def git(*arguments: str) -> str:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is no git repository")
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout


def tracked() -> Iterator[Path]:
    for name in git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        path = ROOT / name
        if name and path.is_file():
            yield path


def looks_private(path: Path) -> bool:
    """Whether a file is a fixture's output or input: by its name, or by the keys in it with their values."""
    if path.name in PRIVATE_NAMES:
        return True
    if path.suffix != ".json" or path.stat().st_size > 1_000_000:
        return False
    text = path.read_text("utf-8", errors="replace")
    return all(key in text for key in KEYS[:2]) or (KEYS[2] in text and '"mcpTransportUrl"' in text)


@pytest.mark.req("PRIV-017")
def test_private_files_and_runs_are_ignored() -> None:
    assert git("check-ignore", *PRIVATE).splitlines() == list(PRIVATE)
    assert [str(path) for path in tracked() if ".orca" in path.parts or path.is_relative_to(ROOT / "runs")] == []


@pytest.mark.req("PRIV-017", "PRIV-007", "FX-029")
def test_no_private_file_is_in_the_repository() -> None:
    assert [str(path) for path in tracked() if looks_private(path)] == []


@pytest.mark.req("PRIV-017")
def test_a_private_file_is_noticed(tmp_path: Path) -> None:
    for name, members in {
        FIXTURE_OUTPUT.name: {},
        "copied.json": {"chatKey": "a", "provisioningKey": "b"},
        "input.json": {"mcpTransportUrl": "http://127.0.0.1:1/mcp", "staticCredential": "c"},
    }.items():
        path = tmp_path / name
        path.write_text(json.dumps(members), "utf-8")
        assert looks_private(path), name
    other = tmp_path / "other.json"
    other.write_text('{"chatKey": "a"}', "utf-8")
    assert not looks_private(other)


@pytest.mark.req("PRIV-008", "FX-015")
def test_tls_is_validated_everywhere() -> None:
    # This test and the ledger name what they forbid.
    named = (Path(__file__), ROOT / "contract" / "requirements" / "partner.yaml")
    found = [
        f"{path}: {match[0]}"
        for path in tracked()
        if path.suffix in SOURCES and path not in named
        for match in UNVALIDATED.finditer(path.read_text("utf-8", errors="replace"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "NODE_TLS_REJECT_UNAUTHORIZED=0",
        'env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0"'.replace('"] =', '":'),
        "rejectUnauthorized: false",
        "verify=False",
        "ssl=False",
        "ssl.CERT_NONE",
        "curl -s -k https://x",
        "curl --insecure https://x",
    ],
)
def test_a_validation_that_is_off_is_noticed(text: str) -> None:
    assert UNVALIDATED.search(text)
