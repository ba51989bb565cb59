"""The text that agent2 is given for a job, made from the job's inputs."""

from __future__ import annotations

from collections.abc import Sequence

CHAT_PROMPT_BYTES = 16384
REQUEST_TEXT_BYTES = 65536
# LA-030: what counts as blank at both ends of a text: white space and the byte order mark.
_BLANK = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(map(chr, range(0x2000, 0x200B)))
_GENERIC = {
    "fix": "Find the cause of the incident and fix it.",
    "implement": "Implement what the incident asks for.",
}


class PromptTooLarge(Exception):
    """A chat's prompt is above the limit; it is never sent shortened (CHAT-012)."""


class PromptEmpty(Exception):
    """A chat without text (CHAT-017)."""


def joined(parts: Sequence[str]) -> str:
    """The parts with a blank line between them, as valid Unicode."""
    return "\n\n".join(parts).encode("utf-8", "replace").decode()


def chat_text(parts: Sequence[str]) -> str:
    """The prompt of a chat; raises `PromptTooLarge` or `PromptEmpty`."""
    # CHAT-016: what is measured is all parts, joined and trimmed.
    text = joined(parts).strip(_BLANK)
    if not text:
        raise PromptEmpty
    # CHAT-012, CHAT-015: bytes of UTF-8, measured on the whole text.
    if len(text.encode()) > CHAT_PROMPT_BYTES:
        raise PromptTooLarge
    return text


def request_text(kind: str, parts: Sequence[str], incident_id: str | None) -> str:
    """The text of a job that is no chat: cut to its limit between two characters, never empty (LA-029)."""
    text = joined(parts).strip(_BLANK)
    if not text:
        sentence = _GENERIC[kind]
        return sentence if incident_id is None else f"{sentence} Incident: {incident_id}"
    return text.encode()[:REQUEST_TEXT_BYTES].decode("utf-8", "ignore")
