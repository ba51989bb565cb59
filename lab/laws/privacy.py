"""The laws of what an agent keeps and gives away: secrets are masked first, and its disk is its owner's alone."""

from __future__ import annotations

from collections.abc import Iterator

from lab.journal.events import BodyAnswered, SecretsDrawn, SutFile
from lab.journal.writer import Entry
from lab.laws.law import Judgement, Law, Tally
from lab.laws.seen import LOCAL_AGENT
from lab.laws.view import JournalView

PROMPTS = frozenset({"prompt", "prompt.hex"})
"""The canaries that the driver puts into every input."""

OTHERS = 0o077
"""The permission bits of group and others."""


def _secrets_masked(view: JournalView) -> Judgement:
    tally = Tally("secrets-masked", LOCAL_AGENT)
    secrets = {name for entry in view.entries if isinstance(entry.event, SecretsDrawn) for name in entry.event.canaries}
    if not secrets:
        return tally.judgement()
    for entry in view.entries:
        event = entry.event
        if isinstance(event, BodyAnswered) and event.status == "ok":
            found = [name for name in event.facts.get("canaries", ()) if name in secrets]
            connection = view.connections.get(event.conn)
            who = view.participant(None) if connection is None else view.agent_of(connection)
            # CHAT-026, CHAT-060: masked before it leaves
            _judge(tally, who, found, f"a body of {event.content}", entry)
        elif isinstance(event, SutFile) and event.canaries is not None:
            # CHAT-025: stored masked
            _judge(tally, event.name, [name for name in event.canaries if name in secrets], _words(event), entry)
    return tally.judgement()


def _judge(tally: Tally, who: str, found: list[str], where: str, entry: Entry) -> None:
    if found:
        tally.broken(who, f"canary {', '.join(found)} in {where}", "every secret masked", (entry.n,))
    else:
        tally.held()


# The disk


def _state_private(view: JournalView) -> Judgement:
    tally = Tally("state-private", LOCAL_AGENT)
    for entry, file in _files(view):
        if not file.path:
            # CHAT-061 speaks of what lies below the state folder.
            continue
        if file.mode & OTHERS:
            # CHAT-061: 0700 and 0600
            seen = f"{_words(file)} with mode {file.mode:04o}"
            tally.broken(file.name, seen, "0700" if file.folder else "0600", (entry.n,))
        elif PROMPTS.intersection(file.canaries or ()) and not _chatted(view, file.name):
            # SEC-002: the inputs of a job are transient; only a chat's are kept, as the user's turn
            tally.broken(file.name, f"the inputs of a job in {_words(file)}", "no input kept", (entry.n,))
        else:
            tally.held()
    return tally.judgement()


def _files(view: JournalView) -> Iterator[tuple[Entry, SutFile]]:
    for entry in view.entries:
        if isinstance(entry.event, SutFile):
            yield entry, entry.event


def _chatted(view: JournalView, agent: str) -> bool:
    return any(job.kind == "chat" and job.assigns and view.agent_of_job(job) == agent for job in view.jobs.values())


def _words(file: SutFile) -> str:
    what = "folder" if file.folder else "file"
    return f"the state's {what} {file.path}" if file.path else "the state's folder"


LAWS = (
    Law(
        "secrets-masked",
        "An agent masks every secret in what agent2 and the user say before it keeps it or gives it away",
        LOCAL_AGENT,
        ("CHAT-025", "CHAT-026", "CHAT-060"),
        _secrets_masked,
    ),
    Law(
        "state-private",
        "What an agent keeps on disk only its owner can read, and of inputs only a chat's are kept",
        LOCAL_AGENT,
        ("CHAT-061", "SEC-002"),
        _state_private,
    ),
)
