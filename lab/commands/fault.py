"""`lab fault`: break and heal what a running `lab up` has."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from lab.errors import EnvironmentFault, ExitStatus, UsageError
from lab.up.files import ControlFile, read_control

ALONE = ("cut", "reset", "heal")
"""Kinds of faults of a link that need nothing but their word."""
SECONDS = 10.0
_WHOLE = re.compile(r"-?[0-9]{1,15}", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,15}\.[0-9]{1,15}", re.ASCII)
_FLAGS = {"true": True, "false": False}
_BESIDE = ("stream", "toxicity")
"""What is said of a toxic itself, beside the attributes of its type."""


def order(target: str | None, kind: str | None, values: Sequence[str], lasts: str | None, folder: Path) -> ExitStatus:
    """Carry the order to the environment of `folder`; without a target tell what there is."""
    control = read_control(folder)
    if target is None or kind is None:
        _show(_ask(control, "/", None))
        return ExitStatus.HELD
    done = _ask(control, "/faults", members_of(target, kind, values, lasts))
    for_how_long = f" for {done['seconds']:g} s" if done.get("seconds") else ""
    which = " ".join((done["fault"], *done.get("toxics", ())))
    click.echo(f"{done['target']}: {which}{for_how_long}")
    return ExitStatus.HELD


def members_of(target: str, kind: str, values: Sequence[str], lasts: str | None) -> Mapping[str, Any]:
    """The members of a `fault:` step for what the command line says. Raises `UsageError`."""
    more = {} if lasts is None else {"for": lasts}
    if kind == "crash":
        _none_left(kind, values)
        if lasts is None:
            raise UsageError(
                f"lab fault {target} crash: `--for` is due, such as `--for 2s`: nothing else brings it back."
            )
        return {"partner": target, "crash": True, **more}
    link: dict[str, Any] = {"link": target}
    match kind:
        case "delay" | "weather":
            if len(values) != 1:
                raise UsageError(f"lab fault {target} {kind}: due is one value, such as 200ms or slow-mobile.")
            return {**link, kind: values[0], **more}
        case "toxic":
            return {**link, **_toxic(values), **more}
        case _ if kind in ALONE:
            _none_left(kind, values)
            return {**link, kind: True, **more}
    raise UsageError(
        f"lab fault: `{kind}` is no fault; there are {', '.join((*ALONE, 'delay, weather, toxic, crash'))}."
    )


def _none_left(kind: str, values: Sequence[str]) -> None:
    if values:
        raise UsageError(f"lab fault: `{kind}` takes no value, and `{values[0]}` was given. `--for 5s` says how long.")


def _toxic(values: Sequence[str]) -> Mapping[str, Any]:
    if not values:
        raise UsageError("lab fault: due is the toxic's type and its attributes, such as `toxic latency latency=300`.")
    attributes: dict[str, Any] = {}
    beside: dict[str, Any] = {}
    for text in values[1:]:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"lab fault: seen `{text}`, due NAME=VALUE, such as latency=300.")
        (beside if name in _BESIDE else attributes)[name] = _value(value)
    return {"toxic": values[0], **({"attributes": attributes} if attributes else {}), **beside}


def _value(text: str) -> int | float | bool | str:
    """A number or a flag as one; all else stays text, for the environment to judge."""
    if _WHOLE.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    return _FLAGS.get(text, text)


def _ask(control: ControlFile, path: str, body: Mapping[str, Any] | None) -> Mapping[str, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(  # noqa: S310  the URL is of a private file that `lab up` wrote
        control.url + path, data, {"Authorization": f"Bearer {control.key}"}
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=SECONDS) as answer:
            found: Mapping[str, Any] = json.load(answer)
            return found
    except urllib.error.HTTPError as error:
        raise (EnvironmentFault if error.code >= 500 else UsageError)(_told(error)) from None
    except (OSError, ValueError) as error:
        raise EnvironmentFault(
            f"the `lab up` of {control.scenario} does not answer at {control.url}: {error}"
        ) from error


def _told(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(error)["error"])
    except (ValueError, KeyError, TypeError):
        return f"the environment refused: HTTP {error.code}"


def _show(there: Mapping[str, Any]) -> None:
    for name, address in there["links"].items():
        click.echo(f"{name:<12} {address}")
    click.echo(f"{there['secondsLeft']} s left")
