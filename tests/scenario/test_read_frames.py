"""The directions of the frame types, as the contract has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.errors import ContractError
from lab.scenario.read_frames import contract_directions, types_in


def test_directions_of_the_contract() -> None:
    directions = contract_directions()
    assert directions["job.assign"] == "cp-to-la"
    assert directions["job.event"] == "la-to-cp"
    assert directions["ack"] == "both"


@pytest.mark.parametrize("text", [None, "{", "{}", '{"types": []}', '{"types": {"ack": {}}}'])
def test_an_index_that_cannot_be_read(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "index.json"
    if text is not None:
        file.write_text(text, "utf-8")
    with pytest.raises(ContractError, match=r"index\.json: the directions of the frame types cannot be read"):
        types_in(file)
