from __future__ import annotations

from lab.journal.events import digest
from lab.partner.model.prompt import Prompt


def test_a_prompt_is_told_in_digests_only() -> None:
    prompt = Prompt("PROMPT-MARKER", (b"IMAGE-MARKER",), 1)
    assert prompt.facts() == {
        "prompt": digest("prompt", "PROMPT-MARKER"),
        "images": [digest("image", b"IMAGE-MARKER")],
        "shortened": 1,
    }
    assert "MARKER" not in repr(prompt)
    assert "MARKER" not in repr(prompt.facts())
