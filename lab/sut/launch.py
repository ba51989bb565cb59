"""From a profile and the values of a run to the exact command, folder and environment of a program."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lab.errors import UsageError
from lab.sut.profile import HOME, VARIABLE, Profile
from lab.sut.template import BLANK, Template, nearest_word
from lab.sut.values import SutValues

ESSENTIAL = ("PATH", "LANG", "LC_*", "TMPDIR", "TZ", "USER", "LOGNAME")
"""What every program gets from the caller's environment; a trailing `*` stands for any ending. All else stays
out, so that a run depends neither on the user's shell nor on a variable meant for another program."""


@dataclass(frozen=True)
class Launch:
    """What is started, to the letter. Its repr shows neither the command nor the environment: both hold secrets."""

    command: tuple[str, ...] = field(repr=False)
    cwd: Path
    environment: Mapping[str, str] = field(repr=False)
    """The whole environment."""
    passed_on: frozenset[str] = frozenset()
    """Names in `environment` that come from the caller unchanged."""
    stop_signal: signal.Signals = signal.SIGTERM
    grace: float = 5.0
    """Seconds between the stop signal and SIGKILL."""
    state: Path | None = None
    """The folder of what the program keeps, where the profile names one."""


def resolve(
    profile: Profile, values: SutValues, home: Path, blanks: Mapping[str, str], inherited: Mapping[str, str]
) -> Launch:
    """Fill `profile`'s templates.

    `home` is an existing folder, used when the profile wants a temporary one. `blanks` are the user's
    `--set sut.NAME=value`, by NAME; `inherited` is the caller's environment, which may fill a blank as well
    (`LAB_SUT_NAME`) and from which the profile's variables are passed on. An open blank, an unknown one, or a
    value that cannot stand where it is used raises `UsageError`.
    """
    passed_on = {name: value for name, value in inherited.items() if _is_passed_on(profile, name)}
    # LA-047: the program finds neither the user's agent id nor his store.
    own_home = {} if profile.inherits_home else {HOME: str(home)}
    texts = {
        **values.texts(),
        "home": inherited.get(HOME, "") if profile.inherits_home else str(home),
        **{BLANK + name: text for name, text in _filled(profile, blanks, inherited).items()},
    }
    given = {**own_home, **_environment(profile, texts)}
    cwd = profile.cwd.fill(texts)
    launch = Launch(
        command=tuple(part.fill(texts) for part in profile.command),
        cwd=Path(cwd),
        environment={**passed_on, **given},
        passed_on=frozenset(passed_on) - frozenset(given),
        stop_signal=profile.stop_signal,
        grace=profile.grace,
        state=None if profile.state is None else Path(profile.state.fill(texts)),
    )
    if not cwd:
        raise UsageError(f"profile {profile.name}: `cwd` names no folder once it is filled.")
    _check(profile, launch)
    return launch


def environment_to_show(launch: Launch) -> str:
    """Shell lines that give a program the lab's values, for a person who starts it himself (attach).

    This text holds the run's tokens on purpose, since the program needs them: it goes to the user's own
    terminal and nowhere else, never into a log, a journal or a report.
    """
    lines = [
        f"export {name}={shlex.quote(value)}"
        for name, value in launch.environment.items()
        # A HOME pasted into a shell would follow the user around.
        if name not in launch.passed_on and name != HOME
    ]
    return "".join(line + "\n" for line in lines)


def blank_values(profile: Profile, blanks: Mapping[str, str], inherited: Mapping[str, str]) -> tuple[str, ...]:
    """What the user filled into blanks that stand in a variable's value: it may be a secret, and is masked as one."""
    filled = _filled(profile, blanks, inherited)
    used = [name for _, value in profile.environment for name in value.blanks()]
    return tuple(dict.fromkeys(filled[name] for name in used if filled[name]))


def _is_passed_on(profile: Profile, name: str) -> bool:
    wanted = (*ESSENTIAL, *profile.inherit, *((HOME,) if profile.inherits_home else ()))
    return any(name.startswith(word[:-1]) if word.endswith("*") else name == word for word in wanted)


def _filled(profile: Profile, blanks: Mapping[str, str], inherited: Mapping[str, str]) -> dict[str, str]:
    """The text of every blank, or one error that lists all that are open."""
    for name in blanks:
        if name not in profile.blanks:
            nearest = nearest_word(name, tuple(profile.blanks))
            hint = f" Did you mean `sut.{nearest}`?" if nearest else ""
            due = ", ".join(f"sut.{blank}" for blank in profile.blanks) or "none"
            raise UsageError(f"`sut.{name}` is no blank of profile {profile.name}; its blanks: {due}.{hint}")
    # LA-046: what the documents do not name, the user maps.
    filled: dict[str, str] = {}
    for name in profile.blanks:
        text = blanks.get(name, inherited.get(variable_of(name)))
        if text is not None:
            filled[name] = text
    left = [name for name in profile.blanks if name not in filled]
    if left:
        lines = "".join(
            f"\n  {name}: {profile.blanks[name]}\n    fill it with --set sut.{name}=VALUE or {variable_of(name)}=VALUE"
            for name in left
        )
        raise UsageError(f"profile {profile.name} has blanks that only you can fill:{lines}")
    return filled


def variable_of(blank: str) -> str:
    """The environment variable that fills a blank."""
    return f"LAB_SUT_{blank.upper()}"


def _environment(profile: Profile, texts: Mapping[str, str]) -> dict[str, str]:
    environment: dict[str, str] = {}
    for name_template, value_template in profile.environment:
        name = name_template.fill(texts)
        if not name and name_template.blanks():
            continue
        if VARIABLE.fullmatch(name) is None:
            raise UsageError(
                f"profile {profile.name}: {_words(name_template)} is filled with {name!r}, which is no name of an "
                "environment variable. Write letters, digits and `_`, or nothing to leave the variable out."
            )
        if name in environment or name == HOME:
            raise UsageError(
                f"profile {profile.name}: {_words(name_template)} is filled with `{name}`, which is set already. "
                "Give each variable a name of its own, or nothing to leave one out."
            )
        environment[name] = value_template.fill(texts)
    return environment


def _words(template: Template) -> str:
    return " and ".join(f"blank {name}" for name in template.blanks()) or "a variable"


def _check(profile: Profile, launch: Launch) -> None:
    """Refuse what no program can be started with."""
    if not launch.command[0]:
        raise UsageError(f"profile {profile.name}: the command names no program once it is filled.")
    for where, texts in (("command", launch.command), ("environment", tuple(launch.environment.values()))):
        if any("\0" in text for text in texts):
            raise UsageError(
                f"profile {profile.name}: the {where} holds a NUL character, which no program can be given."
            )
    if "\0" in str(launch.cwd):
        raise UsageError(f"profile {profile.name}: `cwd` holds a NUL character, which no folder's name can.")
