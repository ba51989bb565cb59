"""The course of one step, whichever leg it belongs to: its deadline, and its beginning and end in the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from lab.context import RunContext
from lab.errors import LabError, RemoteError
from lab.journal.events import StepEnded, StepStarted
from lab.scenario.step import Step


class StepFailed(RemoteError):
    """A step did not come to its end; the message says what it waited for and what there was instead."""


async def take_step(
    ctx: RunContext,
    index: int,
    step: Step,
    described: tuple[str, str],
    do: Callable[[Step], Awaitable[str]],
    waited_for: Callable[[Step], str],
) -> None:
    """Carry out step `index` by `do`, whose few words become the step's note.

    `described` is the step's word and its title; `waited_for` says what was there when `within` was over. Raises what
    ended the step early: `StepFailed` for its own deadline, or what `do` raised.
    """
    kind, title = described
    ctx.journal.record("driver", StepStarted(index, kind, title, step.line))
    outcome, note = "failed", ""
    try:
        try:
            async with asyncio.timeout(step.within):
                note = await do(step)
        except TimeoutError:
            raise StepFailed(f"not within {step.within:g} s: {waited_for(step)}") from None
        outcome = "done"
    except asyncio.CancelledError:
        outcome = "interrupted"
        raise
    except LabError as error:
        # The first line only: behind it may stand what a program said, which is not for the journal.
        note = str(error).partition("\n")[0]
        raise
    finally:
        ctx.journal.record("driver", StepEnded(index, outcome, note))
