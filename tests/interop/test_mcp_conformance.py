"""The MCP conformance runner against the store: what it misses is written down, and nothing else may be missed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from lab.store.conformance_tools import conformance_tools
from lab.store.settings import Form, StoreSettings
from tests.interop.environments import HERE, MCP_TS, Finished, node, run
from tests.store.bench import running

RUNNER = MCP_TS / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
BASELINES = HERE / "conformance"
REVISIONS = ("2025-11-25", "2026-07-28")

pytestmark = pytest.mark.timeout(120)


async def judged(revision: str, baseline: Path, out: Path) -> Finished:
    """The runner's word on a store that is open to it, since it can send no headers."""
    settings = StoreSettings(answers=Form.SSE, own_streams=True)
    async with running(settings, static=None, more_tools=conformance_tools()) as bench:
        return await run(
            node(),
            RUNNER,
            *("server", "--url", bench.server.url, "--requirements", revision),
            *("--expected-failures", baseline, "--output-dir", out),
        )


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_store_conforms_but_for_the_baseline(revision: str, tmp_path: Path) -> None:
    done = await judged(revision, BASELINES / f"{revision}.yaml", tmp_path)
    assert done.status == 0, done.out[-4000:] + done.err
    assert "all failures are expected" in done.out


@pytest.mark.parametrize(("entry", "said"), [("ping", "ping"), (None, "completion-complete")])
async def test_a_baseline_fails_by_an_entry_too_many_and_by_one_too_few(
    entry: str | None, said: str, tmp_path: Path
) -> None:
    known = yaml.safe_load((BASELINES / "2025-11-25.yaml").read_text())["server"]
    told = [*known, entry] if entry else [one for one in known if not one.startswith(said)]
    baseline = tmp_path / "baseline.yaml"
    baseline.write_text(yaml.safe_dump({"server": told}))
    done = await judged("2025-11-25", baseline, tmp_path / "out")
    assert done.status == 1
    assert said in done.out.partition("SUMMARY")[2].partition("Total:")[2]
