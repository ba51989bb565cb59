"""What the model behind a run is given: the message, its files, the tools. The journal tells of it in digests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lab.journal.events import digest
from lab.partner.model.attachment_rules import SHORTENED_NOTICE, text_for_model
from lab.partner.model.parts import Parts
from lab.partner.model.runs import Run


@dataclass(frozen=True, slots=True)
class Prompt:
    """The input of a turn's model requests. `images` are the pictures it is given to look at (AT-005)."""

    text: str = field(repr=False)
    images: tuple[bytes, ...] = field(repr=False)
    shortened: int

    def facts(self) -> Mapping[str, object]:
        """What the journal may hold of it."""
        return {
            "prompt": digest("prompt", self.text),
            "images": [digest("image", image) for image in self.images],
            "shortened": self.shortened,
        }


def prompt_of(parts: Parts, run: Run) -> Prompt:
    """The message, then its text files, each shortened where it must be (AT-007)."""
    texts, images = [run.message], []
    for attachment_id in run.attachment_ids:
        row = parts.state.row("SELECT kind, content FROM attachments WHERE attachment_id = ?", attachment_id)
        if row is None:
            continue
        if row["kind"] == "image":
            images.append(bytes(row["content"]))
        else:
            texts.append(text_for_model(bytes(row["content"])))
    shortened = sum(text.endswith(SHORTENED_NOTICE) for text in texts[1:])
    return Prompt("\n\n".join(texts), tuple(images), shortened)
