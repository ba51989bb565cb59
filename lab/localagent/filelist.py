"""Answering `file.list`: the entries of one folder of a workspace, under refs that hold no path (SEC-006)."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lab.draws import Draws
from lab.localagent.answer import Answer, found, refused
from lab.localagent.config import Workspace

MAX_ENTRIES = 4096
MAX_REFS = 8192
MAX_NAME = 255


@dataclass(frozen=True)
class _Entry:
    name: str
    kind: str
    size: int


class FileLists:
    """Folders by ref: a workspace's root ref is known from the start, the others are minted as they are listed."""

    def __init__(self, workspaces: Sequence[Workspace], draws: Draws) -> None:
        self._draws = draws
        self._roots = {workspace.root_ref: workspace for workspace in workspaces}
        self._folders: dict[str, tuple[Workspace, PurePosixPath]] = {}
        self._refs: dict[tuple[str, PurePosixPath], str] = {}

    def answer(self, ref: str, max_bytes: int, workspace_id: str) -> Answer:
        """The listing of the folder at `ref`, cut to `max_bytes`."""
        place = self._place(ref)
        if place is None:
            return refused("not_found")
        workspace, folder = place
        # CH-036: a ref of another workspace.
        if workspace.workspace_id != workspace_id:
            return refused("forbidden")
        entries = _entries(workspace.files, folder)
        if entries is None:
            return refused("not_found")
        body = self._body(workspace, folder, entries, max_bytes)
        return refused("error", "payload_too_large") if body is None else found(body)

    def _place(self, ref: str) -> tuple[Workspace, PurePosixPath] | None:
        root = self._roots.get(ref)
        return (root, PurePosixPath()) if root is not None else self._folders.get(ref)

    def _body(
        self, workspace: Workspace, folder: PurePosixPath, entries: Sequence[_Entry], max_bytes: int
    ) -> bytes | None:
        items: list[str] = []
        left = max_bytes - len(_encoded([], truncated=False))
        if left < 0:
            return None
        for entry in entries[:MAX_ENTRIES]:
            item: dict[str, object] = {"name": entry.name, "kind": entry.kind, "size": entry.size}
            if entry.kind == "directory":
                item["ref"] = self._ref(workspace, folder / entry.name)
            text = json.dumps(item, ensure_ascii=False, separators=(",", ":"))
            left -= len(text.encode()) + (1 if items else 0)
            if left < 0:
                break
            items.append(text)
        return _encoded(items, truncated=len(items) < len(entries))

    def _ref(self, workspace: Workspace, folder: PurePosixPath) -> str:
        key = (workspace.workspace_id, folder)
        ref = self._refs.pop(key, None)
        if ref is None:
            ref = self._draws.token()
            self._folders[ref] = (workspace, folder)
        self._refs[key] = ref
        while len(self._refs) > MAX_REFS:
            del self._folders[self._refs.pop(next(iter(self._refs)))]
        return ref


def _encoded(items: Sequence[str], truncated: bool) -> bytes:
    return f'{{"entries":[{",".join(items)}],"truncated":{"true" if truncated else "false"}}}'.encode()


def _entries(root: Path, folder: PurePosixPath) -> list[_Entry] | None:
    """Files and folders by name. Links are neither shown nor followed, so nothing outside the root is seen."""
    try:
        base = root.resolve()
        place = root / folder
        if place.resolve() != base / folder:
            return None
        with os.scandir(place) as listing:
            found_entries = [entry for item in listing if (entry := _entry(item)) is not None]
    except (OSError, RuntimeError):
        return None
    return sorted(found_entries, key=lambda entry: entry.name)


def _entry(item: os.DirEntry[str]) -> _Entry | None:
    try:
        facts = item.stat(follow_symlinks=False)
        item.name.encode()
    except (OSError, UnicodeEncodeError):
        return None
    if len(item.name) > MAX_NAME:
        return None
    if stat.S_ISDIR(facts.st_mode):
        return _Entry(item.name, "directory", 0)
    return _Entry(item.name, "file", facts.st_size) if stat.S_ISREG(facts.st_mode) else None
