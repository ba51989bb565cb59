"""Slips of a partner API in its history and with files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lab.partner.model import attachments, history, messages, refusals
from lab.partner.model.answers import Answer, ApiRequest
from lab.partner.model.cursors import Cursors, Position
from lab.partner.model.parts import Parts
from lab.partner.model.words import Code
from tests.bugs.partner import patching
from tests.bugs.partner.patching import Data
from tests.bugs.partner.plants import plant
from tests.bugs.plants import Function, Patch

# Pages


@plant("api-history-oldest-first", scenario="history-pages", law="history-order")
def history_oldest_first(patch: Patch) -> None:
    """A page reads from top to bottom."""

    def reverse(_: Parts, __: ApiRequest, page: Data) -> bool:
        page["items"].reverse()
        return True

    patching.pages(patch, reverse)


@plant("api-history-page-overlaps", scenario="history-pages", law="history-order")
def history_page_overlaps(patch: Patch) -> None:
    """A cursor names the last item of its page, and the next one begins with it."""

    def make(original: Function) -> Function:
        def read(self: Cursors, cursor: str, conversation_id: str) -> Position | None:
            position: Position | None = original(self, cursor, conversation_id)
            if position is None:
                return None
            patch.slipped()
            return replace(position, number=position.number + 1)

        return read

    patch.wrap(Cursors, "read_untrusted", make)


@plant("api-history-page-skips", scenario="history-pages", law="history-equals-stream")
def history_page_skips(patch: Patch) -> None:
    """A page begins one item too late."""

    def skip(_: Parts, request: ApiRequest, page: Data) -> bool:
        return "cursor" in request.query and bool(page["items"].pop(0))

    patching.pages(patch, skip)


@plant("api-cursor-on-last-page", scenario="history-pages", law="history-order")
def cursor_on_last_page(patch: Patch) -> None:
    """Every page that has an item has a cursor."""

    def more(parts: Parts, request: ApiRequest, page: Data) -> bool:
        if page["nextCursor"] is not None or not page["items"]:
            return False
        cursors = history.cursors_of(parts)
        page["nextCursor"] = cursors.write(request.path["conversationId"], Position(0, 0))
        return True

    patching.pages(patch, more)


@plant("api-history-ignores-limit", scenario="history-pages", law="history-order")
def history_ignores_limit(patch: Patch) -> None:
    """A page has its own length."""
    patching.changed(patch, history, "_limit_untrusted", lambda limit: 50 if limit != 50 else None)


# Items and parts


def parts_of(patch: Patch, change: Any) -> None:
    """Let `change` make other parts of those of an answer; None leaves them as they are."""

    def altered(item: Data) -> bool:
        other = change(item["parts"]) if item.get("parts") else None
        if other is not None:
            item["parts"] = other
        return other is not None

    patching.items(patch, altered)


@plant("api-content-beside-text", scenario="partner-chat", law="answers-fit-contract")
def content_beside_text(patch: Patch) -> None:
    """The text of an item is its content."""

    def rename(_: Parts, __: ApiRequest, page: Data) -> bool:
        for item in page["items"]:
            item["content"] = item.pop("text")
        return True

    patching.pages(patch, rename)


@plant("api-parts-on-user-items", scenario="partner-chat", law="history-equals-stream")
def parts_on_user_items(patch: Patch) -> None:
    """Every item has parts."""

    def add(item: Data) -> bool:
        return item["role"] == "user" and bool(item.setdefault("parts", [{"type": "text", "text": item["text"]}]))

    patching.items(patch, add)


@plant("api-parts-null", scenario="partner-chat", law="history-equals-stream")
def parts_null(patch: Patch) -> None:
    """What is not there is null."""
    patching.items(patch, lambda item: "parts" not in item and item.setdefault("parts", None) is None)


@plant("api-text-not-split-at-tool", scenario="partner-chat", law="history-equals-stream")
def text_not_split_at_tool(patch: Patch) -> None:
    """An answer has one text."""

    def join(parts: list[Data]) -> list[Data]:
        text = "".join(part["text"] for part in parts if part["type"] == "text")
        return [*(part for part in parts if part["type"] != "text"), {"type": "text", "text": text}]

    parts_of(patch, join)


@plant("api-parts-stripped", scenario="partner-chat", law="history-equals-stream")
def parts_stripped(patch: Patch) -> None:
    """White space around a text says nothing."""
    parts_of(
        patch, lambda parts: [{**part, "text": part["text"].strip()} if "text" in part else part for part in parts]
    )


@plant("api-deltas-not-joined", scenario="partner-chat", law="history-equals-stream")
def deltas_not_joined(patch: Patch) -> None:
    """Each delta is a part."""

    def split(parts: list[Data]) -> list[Data]:
        halves = []
        for part in parts:
            if part["type"] != "text":
                halves.append(part)
                continue
            middle = len(part["text"]) // 2
            halves += [{**part, "text": part["text"][:middle]}, {**part, "text": part["text"][middle:]}]
        return halves

    parts_of(patch, split)


@plant("api-tool-part-always-succeeded", scenario="failed-tools", law="history-equals-stream")
def tool_part_always_succeeded(patch: Patch) -> None:
    """A tool that ended has succeeded."""
    parts_of(patch, lambda parts: [{**part, "status": "succeeded"} if "status" in part else part for part in parts])


@plant("api-tool-part-has-result", scenario="partner-chat", law="answers-fit-contract")
def tool_part_has_result(patch: Patch) -> None:
    """A call is kept with what came of it."""
    parts_of(patch, lambda parts: [{**part, "result": "Lamp"} if "status" in part else part for part in parts])


@plant("api-history-attachments-missing", scenario="files", law="history-equals-stream")
def history_attachments_missing(patch: Patch) -> None:
    """Files are had by their own route."""

    def none(item: Data) -> bool:
        had, item["attachments"] = item["attachments"], []
        return bool(had)

    patching.items(patch, none)


@plant("api-attachments-resorted", scenario="files", law="history-equals-stream")
def attachments_resorted(patch: Patch) -> None:
    """Files come as they were uploaded."""

    def resort(item: Data) -> bool:
        item["attachments"].sort(key=lambda one: one["mimeType"], reverse=True)
        return bool(item["attachments"])

    patching.items(patch, resort)


# Files


@plant("api-content-type-lost", scenario="files", law="files-guarded")
def content_type_lost(patch: Patch) -> None:
    """A file is bytes."""
    patching.answer(
        patch,
        patching.CONTENT,
        lambda usual: replace(usual, headers={**usual.headers, "Content-Type": "application/octet-stream"}),
    )


@plant("api-content-cacheable", scenario="files", law="answers-fit-contract")
def content_cacheable(patch: Patch) -> None:
    """A file has its type for a header, and no more."""
    patching.answer(
        patch, patching.CONTENT, lambda usual: replace(usual, headers={"Content-Type": usual.headers["Content-Type"]})
    )


@plant("api-megabytes-by-thousands", scenario="files", law="uploads-judged")
def megabytes_by_thousands(patch: Patch) -> None:
    """Three megabytes are three million bytes."""
    patch.set(attachments, "ATTACHMENT_BYTES", 3_000_000)
    patch.after(attachments, "mime_type", lambda *_: patch.slipped())


@plant("api-six-files", scenario="many-files", law="named-files-known")
def six_files(patch: Patch) -> None:
    """The bound is off by one."""
    patch.set(messages, "ATTACHMENTS_MAX", 6)
    patch.after(messages, "refuse", lambda *_: patch.slipped())


@plant("api-accepted-types-missing", scenario="files-refused", law="answers-fit-contract")
def accepted_types_missing(patch: Patch) -> None:
    """The code says what was wrong."""
    patching.other_refusal(
        patch,
        attachments,
        "type_not_supported",
        lambda: refusals.Refusal(Code.ATTACHMENT_TYPE_NOT_SUPPORTED),
    )


@plant("api-max-bytes-missing", scenario="files-refused", law="answers-fit-contract")
def max_bytes_missing(patch: Patch) -> None:
    """The code says what was wrong."""
    patching.other_refusal(patch, attachments, "too_large", lambda: refusals.Refusal(Code.ATTACHMENT_TOO_LARGE))


@plant("api-json-is-a-file", scenario="many-files", law="answers-fit-contract")
def json_is_a_file(patch: Patch) -> None:
    """What is no text/* is a file."""
    patching.data(
        patch,
        patching.ATTACHMENTS,
        lambda data: data["mimeType"] == "application/json" and bool(data.update(kind="file") is None),
    )


@plant("api-path-in-name", scenario="many-files", law="uploads-judged")
def path_in_name(patch: Patch) -> None:
    """A name is what the form says."""

    def make(original: Function) -> Function:
        def name(filename: str | None) -> str:
            if filename != original(filename):
                patch.slipped()
            return filename or ""

        return name

    patch.wrap(attachments, "clean_name", make)


@plant("api-upload-answers-200", scenario="files", law="answers-fit-contract")
def upload_answers_200(patch: Patch) -> None:
    """All that went well is 200."""
    patching.answer(patch, patching.ATTACHMENTS, lambda usual: replace(usual, status=200))


@plant("api-unknown-file-as-400", scenario="files-of-another", law="named-files-known")
def unknown_file_as_400(patch: Patch) -> None:
    """An id that nobody knows is malformed."""
    patching.other_refusal(patch, messages, "file_not_found", lambda: refusals.invalid("attachmentIds"))


@plant("api-size-of-characters", scenario="many-files", law="uploads-judged")
def size_of_characters(patch: Patch) -> None:
    """A text is as long as it has characters."""

    def make(original: patching.Route) -> patching.Route:
        def stored(parts: Parts, caller: Any, request: ApiRequest) -> Answer:
            told = original(parts, caller, request)
            content = request.body.file.content if getattr(request.body, "file", None) else b""  # type: ignore[union-attr]
            size = len(content.decode("utf-8", "replace"))
            if not isinstance(told.body, dict) or size == len(content):
                return told
            patch.slipped()
            return replace(told, body={"success": True, "data": {**told.body["data"], "size": size}})

        return stored

    patching.route(patch, patching.ATTACHMENTS, make)


@plant("api-svg-accepted", scenario="many-files", law="uploads-judged")
def svg_accepted(patch: Patch) -> None:
    """An image is an image."""

    def make(original: Function) -> Function:
        def kind(content_type: str | None) -> str | None:
            if (content_type or "").startswith("image/svg"):
                patch.slipped()
                return "image/png"
            return original(content_type)  # type: ignore[no-any-return]

        return kind

    patch.wrap(attachments, "mime_type", make)
