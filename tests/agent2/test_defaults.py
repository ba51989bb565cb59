from __future__ import annotations

import pytest

from lab.agent2.beats import LineType
from lab.agent2.defaults import DEFAULTS, default_script
from tests.agent2.written import lines_of


@pytest.mark.parametrize("kind", sorted(DEFAULTS))
def test_every_served_kind_has_a_script(kind: str) -> None:
    lines = lines_of(default_script(kind))
    assert lines[-1].type is LineType.DONE
    assert all(line.source.startswith("built-in:") for line in lines)


def test_a_chat_is_answered() -> None:
    assert LineType.ANSWER in [line.type for line in lines_of(default_script("chat"))]
