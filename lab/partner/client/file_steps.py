"""The steps about a conversation's files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.partner.client.answers import Raw, data_untrusted
from lab.partner.client.asking import Departure, Upload
from lab.partner.client.ground import Ground
from lab.partner.client.outcomes import Done, Outcome
from lab.partner.client.records import FileRecord
from lab.partner.client.shapes import Attachment, FileContent, attachment_untrusted
from lab.partner.client.words import GET_CONTENT, POST_ATTACHMENT


class FileSteps(Ground):
    """Files of a conversation."""

    async def attach(
        self,
        conversation: str,
        label: str,
        content: bytes,
        *,
        name: str = "file.txt",
        mime_type: str | None = "text/plain",
        who: str | None = None,
        departure: Departure | None = None,
    ) -> Outcome[Attachment]:
        """Upload one file, to be named in a message (AT-011)."""
        record, member = self.with_member(conversation, who)
        upload = Upload(name, mime_type, content, member.actor)
        ask = self.site.ask(POST_ATTACHMENT, record.ids, upload=upload, departure=departure)
        outcome = await self.calls.call(ask, attachment_untrusted)
        if isinstance(outcome, Done):
            self.files[label] = FileRecord(label, record, outcome.value)
        return outcome

    async def content(
        self,
        file: str,
        *,
        conversation: str | None = None,
        who: str | None = None,
        as_actor: bool = True,
        departure: Departure | None = None,
    ) -> Outcome[FileContent]:
        """Read a file's bytes, in the actor's name or, with a key of that scope, in nobody's (AT-018)."""
        record = self.file(file)
        place, member = self.with_member(conversation or record.conversation.label, who)
        query: Mapping[str, Any] = member.actor if as_actor else {}
        ids = {**place.ids, "attachmentId": record.told.id}
        ask = self.site.ask(GET_CONTENT, ids, query=query, departure=departure)
        return await self.calls.call(ask, _file_content, _file_untrusted)


def _file_content(raw: Any) -> FileContent:
    content: FileContent = raw
    return content


def _file_untrusted(raw: Raw) -> Any:
    """A file comes as it is; a refusal in the envelope."""
    if raw.status == 200:
        return FileContent(raw.body, raw.headers.get("content-type", ""))
    return data_untrusted(raw)
