"""Signs the frames of vector files, and lays them out: `python -m lab.contract.vector_signing FILE…` after an edit.

Signed is what is due to hold, and what a rule refuses for another reason; a vector that is about its own signature
stays as it is, and so does one that breaks its schema. Nonce, time and key id stay. Signing what is signed changes
nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from nacl.signing import SigningKey

from lab.contract.vectors import Vector, VectorFile, load_vector_file
from lab.protocol.signing import Signer, params_equal
from lab.protocol.wire import encode

_OWN_SIGNATURE: Final = ("paramsRaw", "signed")


def signed_vector(file: VectorFile, vector: Vector) -> object:
    """The message of a vector, signed with the file's own key where that is due."""
    message = vector.message
    if not vector.schema_holds or vector.expect.rule in _OWN_SIGNATURE or not isinstance(message, dict):
        return message
    seed = file.keys.get(message.get("sig", {}).get("keyId"))
    return message if seed is None else _signed(message, SigningKey(seed))


def signed_file(path: Path) -> str:
    """The text of a vector file with all its signatures. Raises ContractError for a file that is none."""
    file = load_vector_file(path)
    document = json.loads(path.read_text("utf-8"))
    for vector, entry in zip(file.vectors, document["vectors"], strict=True):
        entry["message"] = signed_vector(file, vector)
    return laid_out(document)


def laid_out(document: Mapping[str, Any]) -> str:
    """A vector file as text: two lines a vector, the message on the second."""
    head = [f"  {_json(name)}: {_json(value)},\n" for name, value in document.items() if name != "vectors"]
    vectors = ",\n".join(_vector_text(entry) for entry in document["vectors"])
    return "{\n" + "".join(head) + '  "vectors": [\n' + vectors + "\n  ]\n}\n"


def main(files: Sequence[str]) -> None:
    """Sign the files in place."""
    for name in files:
        path = Path(name)
        path.write_text(signed_file(path), "utf-8")


def _signed(message: Mapping[str, Any], key: SigningKey) -> dict[str, Any]:
    sig, payload = message["sig"], message["payload"]
    # What is equal by value may be written otherwise (SG-006), and then is so on purpose.
    same = params_equal(message["paramsRaw"], payload)
    params_raw = message["paramsRaw"] if same else encode(payload)
    signer = Signer(sig["keyId"], key, lambda: sig["nonce"])
    made = signer.sign(message["type"], sig["tenantId"], sig["workspaceId"], params_raw, int(sig["timestamp"]))
    return {**message, "paramsRaw": params_raw, "sig": {**made, "timestamp": sig["timestamp"]}}


def _vector_text(entry: Mapping[str, Any]) -> str:
    rest = _json({name: value for name, value in entry.items() if name != "message"})
    return f'    {rest[:-1]},\n     "message": {_json(entry["message"])}}}'


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    main(sys.argv[1:])
