"""Slips of an agent in what it keeps and sends of a chat: the stored conversation, masking and prompts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from lab.localagent import chatstore, content, jobs, runner
from lab.localagent.chatstore import ChatStore
from lab.localagent.conversation import AnswerText, Turn
from lab.localagent.job import Job
from lab.localagent.outcome import failed
from lab.localagent.prompt import CHAT_PROMPT_BYTES, PromptEmpty, PromptTooLarge, joined
from tests.bugs.plants import Function, Patch, plant

TURN_TIME: Final = "2026-01-01T00:00:00.000Z"


# The conversation


@plant("agent-turn-per-delta", scenario="chat", law="conversation")
def turn_per_delta(patch: Patch) -> None:
    """Each text event is a turn."""

    def store(self: Any, job_id: str, line: str) -> None:
        event = json.loads(line)
        if event["type"] == "text":
            patch.slipped()
            self._turn(*self._open[job_id], Turn("assistant", TURN_TIME, event["text"]))

    patch.after(ChatStore, "append", store)


@plant("agent-answer-stored-twice", scenario="chat", law="conversation")
def answer_stored_twice(patch: Patch) -> None:
    """The final answer comes behind its own pieces."""

    def text(self: Any) -> str:
        patch.slipped()
        return "".join(self._parts) + (self._answer or "")

    patch.set(AnswerText, "text", text)


def sessions(patch: Patch, alter: Callable[[tuple[Turn, ...]], Sequence[Turn]]) -> None:
    """Let `alter` change the turns of each body of chat.session."""

    def make(original: Function) -> Function:
        def body(turns: tuple[Turn, ...], *args: int) -> object:
            patch.slipped()
            return original(alter(turns), *args)

        return body

    patch.wrap(content, "session_body", make)


@plant("agent-turns-newest-first", scenario="chat", law="conversation")
def turns_newest_first(patch: Patch) -> None:
    """The list is not turned round."""
    sessions(patch, lambda turns: turns[::-1])


@plant("agent-turn-role-of-its-own", scenario="chat", law="answer-limits")
def turn_role_of_its_own(patch: Patch) -> None:
    """agent2 is the speaker's name."""
    sessions(patch, lambda turns: [replace(t, role="agent2") if t.role == "assistant" else t for t in turns])


@plant("agent-turn-time-is-local", scenario="chat", law="answer-limits")
def turn_time_is_local(patch: Patch) -> None:
    """A turn's time has an offset."""
    sessions(patch, lambda turns: [replace(turn, ts=turn.ts.replace("Z", "+02:00")) for turn in turns])


@plant("agent-conversation-per-job", scenario="one-conversation", law="refs")
def conversation_per_job(patch: Patch) -> None:
    """The conversation id of the options is never read."""

    def make(original: Function) -> Function:
        def assigned(payload: Any, workspace_id: str) -> Job:
            patch.slipped()
            job: Job = original(payload, workspace_id)
            return replace(job, conversation_id=job.job_id)

        return assigned

    patch.wrap(jobs, "assigned_job", make)


@plant("agent-user-parts-run-together", scenario="chat-two-parts", law="conversation")
def user_parts_run_together(patch: Patch) -> None:
    """One line break between the parts of a question."""

    def run_together(parts: Sequence[str]) -> str:
        patch.slipped()
        return "\n".join(parts)

    patch.set(runner, "joined", run_together)


@plant("agent-store-readable-by-all", scenario="chat", law="state-private")
def store_readable_by_all(patch: Patch) -> None:
    """The store's files have the default mode."""

    def make(original: Function) -> Function:
        def append(path: Any, record: Any) -> None:
            original(path, record)
            patch.slipped()
            path.chmod(0o644)

        return append

    patch.wrap(chatstore, "_append", make)


# Masking


def unmasked_turn(patch: Patch, method: str) -> None:
    """A method of the store that writes a turn knows no patterns."""

    def make(original: Function) -> Function:
        def store(self: Any, *args: str) -> object:
            patch.slipped()
            patterns, self._patterns = self._patterns, ()
            try:
                return original(self, *args)
            finally:
                self._patterns = patterns

        return store

    patch.wrap(ChatStore, method, make)


@plant("agent-mask-missing-in-session", scenario="chat-secret", law="conversation")
def mask_missing_in_session(patch: Patch) -> None:
    """The assistant's turn is stored as it was said."""
    unmasked_turn(patch, "close")


@plant("agent-mask-missing-in-user-turn", scenario="chat-secret-question", law="secrets-masked")
def mask_missing_in_user_turn(patch: Patch) -> None:
    """The user's turn is stored as it was said."""
    unmasked_turn(patch, "begin")


@plant("agent-mask-first-match-only", scenario="chat-secret", law="secrets-masked")
def mask_first_match_only(patch: Patch) -> None:
    """One secret a line is replaced."""

    def mask(text: str, patterns: Any) -> str:
        for pattern in patterns:
            masked = pattern.sub(lambda match: (match.groupdict().get("keep") or "") + "[masked]", text, count=1)
            if masked != text:
                patch.slipped()
                return str(masked)
        return text

    patch.set(chatstore, "mask", mask)


@plant("agent-mask-on-the-way-out", scenario="chat-secret", law="secrets-masked")
def mask_on_the_way_out(patch: Patch) -> None:
    """The store writes the raw line and gives the masked one to the page."""

    def append(self: Any, job_id: str, line: str) -> str | None:
        patch.slipped()
        chatstore._append(chatstore._file(self._jobs, job_id), {"line": line})
        return chatstore.recorded_line(line)

    patch.set(ChatStore, "append", append)


@plant("agent-mask-rewrites-lines", scenario="chat", law="stream-complete")
def mask_rewrites_lines(patch: Patch) -> None:
    """The line is parsed and written again."""

    def make(original: Function) -> Function:
        def recorded(line: str, *args: Any) -> object:
            patch.slipped()
            return original(json.dumps(json.loads(line)), *args)

        return recorded

    patch.wrap(chatstore, "recorded_line", make)


# Prompts


def prompts(patch: Patch, chat_text: Callable[[str], str]) -> None:
    """Let `chat_text` make the prompt of a chat from the joined parts."""

    def text(parts: Sequence[str]) -> str:
        patch.slipped()
        return chat_text(joined(parts).strip())

    patch.set(runner, "chat_text", text)


@plant("agent-prompt-cut", scenario="chat-prompt-too-long", law="prompt-whole")
def prompt_cut(patch: Patch) -> None:
    """The prompt is cut to fit."""
    prompts(patch, lambda text: text.encode()[:CHAT_PROMPT_BYTES].decode("utf-8", "ignore"))


@plant("agent-prompt-counted-in-characters", scenario="chat-prompt-of-umlauts", law="prompt-whole")
def prompt_counted_in_characters(patch: Patch) -> None:
    """Characters are compared with the limit."""

    def text(whole: str) -> str:
        if len(whole) > CHAT_PROMPT_BYTES:
            raise PromptTooLarge
        return whole

    prompts(patch, text)


@plant("agent-prompt-limit-one-short", scenario="chat-prompt-full", law="every-job-its-turn")
def prompt_limit_one_short(patch: Patch) -> None:
    """The limit itself is too large."""

    def text(whole: str) -> str:
        if len(whole.encode()) >= CHAT_PROMPT_BYTES:
            raise PromptTooLarge
        return whole

    prompts(patch, text)


@plant("agent-long-prompt-called-infra", scenario="chat-prompt-too-long", law="prompt-whole")
def long_prompt_called_infra(patch: Patch) -> None:
    """A prompt that is too large ends in the catch-all of agent2 not being there."""

    def text(parts: Sequence[str]) -> str:
        if len(joined(parts).encode()) <= CHAT_PROMPT_BYTES:
            return joined(parts)
        patch.slipped()
        raise runner.Refused(failed("infra"))

    patch.set(runner, "chat_text", text)


@plant("agent-empty-prompt-invented", scenario="chat-prompt-empty", law="prompt-whole")
def empty_prompt_invented(patch: Patch) -> None:
    """A blank question gets the sentence of other kinds."""

    def make(original: Function) -> Function:
        def text(parts: Sequence[str]) -> object:
            try:
                return original(parts)
            except PromptEmpty:
                patch.slipped()
                return "Answer the question."

        return text

    patch.wrap(runner, "chat_text", make)
