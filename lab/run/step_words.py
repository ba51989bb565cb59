"""What the steps of a scenario are called."""

from __future__ import annotations

from lab.errors import MisuseError
from lab.faults.plan import FAULT_KINDS, Acts
from lab.scenario.model import (
    ApproveStep,
    AssignStep,
    CancelStep,
    ContentStep,
    FaultStep,
    IdleStep,
    InjectStep,
    ResultStep,
    SessionStep,
    StreamStep,
    WaitStep,
)
from lab.scenario.step import Step


def describe(step: Step) -> tuple[str, str]:
    """A step's word and its title for people."""
    match step:
        case WaitStep():
            return "wait", f"{step.subject.replace('_', ' ')} {step.condition}".replace(".", " ")
        case AssignStep():
            return "assign", f"assign {step.job} ({step.kind})"
        case CancelStep():
            return "cancel", f"cancel {step.job}"
        case StreamStep():
            goal = "its end" if step.events is None else f"{step.events} events"
            return "stream", f"stream {step.job} to {goal}"
        case SessionStep():
            return "session", f"conversation {step.job}"
        case ResultStep():
            return "result", f"result of {step.job}"
        case ApproveStep():
            return "approve", f"{step.decision} {step.job}"
        case IdleStep():
            return "idle", f"{step.seconds:g} s pass"
        case ContentStep():
            return "content", f"{step.kind} of {step.job}, a chunk every {step.pace:g} s"
        case InjectStep():
            return "inject", f"{step.junk or 'a text'} sent to {step.to.replace('_', ' ')}"
        case FaultStep():
            return "fault", _fault_title(step)
        case _:
            raise MisuseError(f"no title for {type(step).__name__}")


def _fault_title(step: FaultStep) -> str:
    fault = step.fault
    acts = FAULT_KINDS[fault.kind].acts
    target = f"{fault.link} link" if acts is Acts.LINK else fault.service or fault.process or fault.target
    lasting = f", {fault.seconds:g} s" if fault.seconds is not None else ""
    anchored = f" after {fault.anchor.words()}" if fault.anchor and FAULT_KINDS[fault.kind].acts is Acts.LINK else ""
    toxics = " and ".join(dict.fromkeys(toxic.type for toxic in fault.toxics))
    again = f" every {fault.every:g} s" if fault.every is not None else ""
    until = f" until {fault.until.words()}" if fault.until is not None else ""
    return f"{target} {fault.weather or toxics or fault.kind}{anchored}{lasting}{again}{until}"
