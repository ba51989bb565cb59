"""Signs the frames of traces, and lays trace files out: `python -m lab.contract.trace_signing FILE…` after an edit.

What a trace says of the signer (`sign`) and the nonce that stands in the frame stay; paramsRaw, the members of `sig`
and the signature are made anew. Signing what is signed changes nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nacl.signing import SigningKey

from lab.contract.traces import SignOrder, Step, Trace, load_trace
from lab.protocol.signing import Signer
from lab.protocol.wire import encode

WIDTH = 140
"""Columns of a trace file that a value on one line may fill."""


def signed(
    frame: Mapping[str, Any], order: SignOrder, key: SigningKey, nonce: str, timestamp_ms: int
) -> dict[str, Any]:
    """The frame with paramsRaw and sig as `order` has them."""
    params_raw = order.params_raw if order.params_raw is not None else encode(frame["payload"])
    tenant = order.tenant_id if order.tenant_id is not None else str(frame["tenantId"])
    signer = Signer(order.key_id, key, lambda: nonce)
    sig = signer.sign(str(frame["type"]), tenant, str(frame["workspaceId"]), params_raw, timestamp_ms)
    bare = {name: value for name, value in frame.items() if name not in ("paramsRaw", "sig", "payload")}
    return {**bare, "paramsRaw": params_raw, "sig": sig, "payload": frame["payload"]}


def sign_step(trace: Trace, step: Step) -> dict[str, Any] | None:
    """The step's frame signed with the trace's own key at the step's own time, None for what is not signed."""
    if step.sign is None or step.frame is None:
        return None
    key = SigningKey(trace.keys[step.sign.key_id])
    made = f"trace-nonce-{step.number:010d}"
    nonce = str(step.frame.get("sig", {}).get("nonce", made))
    return signed(step.frame, step.sign, key, nonce, trace.start_ms + round(step.at * 1000))


def signed_file(path: Path) -> str:
    """The text of a trace file with all its signatures, laid out. Raises ContractError for a file that is no trace."""
    trace = load_trace(path)
    document = json.loads(path.read_text("utf-8"))
    for step, entry in zip(trace.steps, document["steps"], strict=True):
        frame = sign_step(trace, step)
        if frame is not None:
            entry["frame"] = frame
    return laid_out(document) + "\n"


def laid_out(value: object, indent: int = 0, before: int = 0) -> str:
    """JSON with every object and list that fits on one line on one line. `before` is what stands left of it there."""
    short = json.dumps(value, ensure_ascii=False)
    if indent + before + len(short) <= WIDTH or not isinstance(value, dict | list) or not value:
        return short
    inner, outer = " " * (indent + 2), " " * indent
    if isinstance(value, dict):
        names = {name: json.dumps(name, ensure_ascii=False) for name in value}
        lines = [
            f"{inner}{names[name]}: {laid_out(item, indent + 2, len(names[name]) + 3)}" for name, item in value.items()
        ]
        return "{\n" + ",\n".join(lines) + f"\n{outer}}}"
    return "[\n" + ",\n".join(f"{inner}{laid_out(item, indent + 2, 1)}" for item in value) + f"\n{outer}]"


def main(files: Sequence[str]) -> None:
    """Sign the files in place."""
    for name in files:
        path = Path(name)
        path.write_text(signed_file(path), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
