"""What the steps of the partner leg are called."""

from __future__ import annotations

from lab.run.step_words import describe
from lab.scenario.partner_model import (
    AttachStep,
    BindStep,
    CallStep,
    ContextStep,
    ControlStep,
    ConversationStep,
    DownloadStep,
    FollowStep,
    GrantStep,
    HistoryStep,
    MembershipStep,
    MessageStep,
    PollStep,
    RecoverStep,
    StoreStep,
)
from lab.scenario.step import Step


def describe_partner(step: Step) -> tuple[str, str]:
    """A step's word and its title for people."""
    match step:
        case MembershipStep():
            return "membership", f"membership of {step.user}{'' if step.active else ' ends'}"
        case ConversationStep():
            return "conversation", f"conversation {step.conversation} of {step.user}{_again(step.again)}"
        case GrantStep():
            return "grant", f"{'wrong ' if step.wrong else ''}grant for {step.conversation}"
        case BindStep():
            return "bind", f"bind {step.conversation}"
        case ContextStep():
            return "context", f"context of {step.conversation}"
        case RecoverStep():
            return "recover", f"recover the context of {step.conversation}"
        case AttachStep():
            return "attach", f"upload {step.file} ({step.type})"
        case DownloadStep():
            return "download", f"read {step.file} back"
        case MessageStep():
            return "message", f"message {step.run} in {step.conversation}{_again(step.again)}"
        case FollowStep():
            goal = "its end" if step.events is None else f"{step.events} events"
            return "follow", f"{'read' if step.replay else 'follow'} {step.run} to {goal}"
        case PollStep():
            return "poll", f"run {step.run} {'now' if step.until == 'now' else f'until {step.until}'}"
        case HistoryStep():
            return "history", f"history of {step.conversation}"
        case CallStep():
            return "call", f"{step.method} {step.path} with {'no' if step.key == 'none' else step.key} key"
        case ControlStep():
            value = f"{step.value:g} s" if isinstance(step.value, float) else step.value
            return "control", f"{step.control.replace('_', ' ')} {value}"
        case StoreStep():
            return "store", "store forgets its sessions" if step.forget_sessions else "store misbehaves"
        case _:
            return describe(step)


def _again(label: str | None) -> str:
    return f", the key of {label} again" if label else ""
