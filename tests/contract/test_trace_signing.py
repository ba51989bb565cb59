"""Signing and laying out trace files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.contract.trace_signing import WIDTH, laid_out, main, signed_file
from lab.contract.traces import Trace, load_trace
from tests.contract.test_traces import FOUND


@pytest.mark.parametrize("trace", FOUND.traces, ids=lambda trace: trace.name)
def test_signing_what_is_signed_changes_nothing(trace: Trace) -> None:
    assert signed_file(trace.path) == trace.path.read_text("utf-8")


def test_an_edit_is_signed_anew(tmp_path: Path) -> None:
    trace = next(one for one in FOUND.traces if one.name == "invalid-seq-gap")
    path = tmp_path / trace.path.name
    document = json.loads(trace.path.read_text())
    document["steps"][3]["frame"]["payload"]["reason"] = "shutdown"
    path.write_text(json.dumps(document))
    main([str(path)])
    before, after = trace.steps[3].frame or {}, load_trace(path).steps[3].frame or {}
    assert after["paramsRaw"] == before["paramsRaw"].replace("user", "shutdown")
    assert after["sig"]["signature"] != before["sig"]["signature"]
    assert after["sig"]["nonce"] == before["sig"]["nonce"]


def test_what_fits_on_a_line_stands_on_one() -> None:
    value = {"short": [1, 2], "long": ["x" * 80, "y" * 80], "empty": {}}
    text = laid_out(value)
    assert json.loads(text) == value
    assert '"short": [1, 2],' in text
    assert all(len(line) <= WIDTH for line in text.splitlines())
