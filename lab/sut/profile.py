"""Profiles: how a real program is started as the system under test.

A profile is a YAML file with a command and a template of its environment. The documents do not name every
variable that the real Local Agent reads, so a profile may leave blanks, in values and in names of variables,
which its user fills (LA-046, SG-021, A2-055).
"""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lab.durations import parse_duration
from lab.errors import UsageError
from lab.sut.template import BLANK, Template, TemplateError, nearest_word, parse_template
from lab.sut.values import PLACEHOLDERS
from lab.sut.yaml_file import Item, read_yaml

HOME = "HOME"
SUFFIX = ".yaml"

_KEYS = ("profile", "about", "command", "cwd", "environment", "home", "state", "inherit", "ready", "stop", "blanks")
_HOMES = ("temporary", "inherit")
_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGKILL")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
"""The name of an environment variable."""

_BLANK_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)

STATE_FOLDER = "{home}/state"
"""Where a program without a profile is told to keep its files."""

LAB_ENVIRONMENT = (
    ("LAB_GATEWAY_WS_URL", "{gateway_ws_url}"),
    ("LAB_GATEWAY_TOKEN", "{gateway_token}"),
    ("LAB_AGENT2_URL", "{agent2_url}"),
    ("LAB_AGENT2_TOKEN", "{agent2_token}"),
    ("LAB_TENANT_ID", "{tenant_id}"),
    ("LAB_AGENT_ID", "{agent_id}"),
    ("LAB_WORKSPACES", "{workspaces}"),
    ("LAB_TRUSTED_KEYS", "{trusted_keys}"),
    ("LAB_SIGNATURE_MODE", "{signature_mode}"),
    ("LAB_STATE_DIR", STATE_FOLDER),
    # CHAT-063: off by default. An agent still announces chat only when its agent2 lists it (CHAT-003).
    ("LOCAL_AGENT_CHAT", "true"),
)
"""The lab's own names for its values: what a program without a profile is given (SG-021)."""


@dataclass(frozen=True)
class Profile:
    """How one program is started, made ready and stopped."""

    name: str
    about: str
    command: tuple[Template, ...]
    cwd: Template
    environment: tuple[tuple[Template, Template], ...]
    """Names and values of variables. A name that is a blank filled with nothing leaves its variable out."""
    inherits_home: bool = False
    """Whether the program sees the user's HOME; otherwise a temporary folder (LA-047)."""
    inherit: tuple[str, ...] = ()
    """Variables passed on from the caller beside the essential ones; a trailing `*` stands for any ending."""
    ready_within: float = 30.0
    """Seconds until the gateway double must see the program ready."""
    stop_signal: signal.Signals = signal.SIGTERM
    grace: float = 5.0
    """Seconds between the stop signal and SIGKILL."""
    state: Template | None = None
    """The folder below its temporary home in which it keeps what it keeps; the lab looks into it at a run's end."""
    blanks: Mapping[str, str] = field(default_factory=dict)
    """What the user must fill: each blank's name with what it is for."""


def load_profile(path: Path) -> Profile:
    """Read a profile. Unreadable: `UsageError`; a fault in it: `ScenarioError` at its place."""
    root = read_yaml(path)
    members = root.members(_KEYS, needed=("profile", "about", "command"))
    name = members["profile"].text()
    if name != path.stem:
        raise members["profile"].fault(f"a profile has the name of its file, here `{path.stem}`.")
    reader = _Reader(_blanks(members.get("blanks")))
    profile = Profile(
        name=name,
        about=members["about"].text(),
        command=reader.command(members["command"]),
        cwd=reader.template(members["cwd"]) if "cwd" in members else parse_template(".", ()),
        environment=reader.environment(members.get("environment")),
        inherits_home=_choice(members.get("home"), _HOMES, "temporary") == "inherit",
        inherit=_inherit(members.get("inherit")),
        ready_within=_ready(members.get("ready")),
        stop_signal=_stop_signal(members.get("stop")),
        grace=_grace(members.get("stop")),
        state=reader.state(members.get("state")),
        blanks=reader.blanks,
    )
    for blank in reader.blanks:
        if blank not in reader.used:
            raise members["blanks"].fault(f"blank `{blank}` is used nowhere in the profile.")
    if profile.state is not None and profile.inherits_home:
        raise members["state"].fault("the lab looks into no folder of the user's: `state` wants `home: temporary`.")
    return profile


def profile_names(folder: Path) -> tuple[str, ...]:
    """The profiles in `folder`, sorted."""
    return tuple(sorted(path.stem for path in folder.glob(f"*{SUFFIX}")))


def find_profile(name: str, folder: Path) -> Profile:
    """The profile `name` of `folder`; a wrong name raises `UsageError` with those that are there."""
    known = profile_names(folder)
    if name not in known:
        nearest = nearest_word(name, known)
        hint = f" Did you mean `{nearest}`?" if nearest else ""
        raise UsageError(f"there is no profile `{name}` in {folder}; there are: {', '.join(known) or 'none'}.{hint}")
    return load_profile(folder / f"{name}{SUFFIX}")


def profile_for_command(text: str) -> Profile:
    """A profile for a command line as a shell reads it, started where the lab was, with the lab's names.

    Placeholders in it are filled. A program that wants other names gets them from `env NAME={gateway_ws_url} …`.
    """
    try:
        parts = shlex.split(text)
        command = tuple(parse_template(part, PLACEHOLDERS) for part in parts)
    except TemplateError as error:
        hint = f" Did you mean `{error.nearest}`?" if error.nearest else ""
        raise UsageError(f"the command of the local agent: {error.message}{hint}") from error
    except ValueError as error:
        raise UsageError(f"the command of the local agent is no command line: {error}.") from error
    if not command or not parts[0]:
        raise UsageError("the command of the local agent is empty; write a program and its arguments.")
    return Profile(
        name="command",
        about="A command of the user",
        command=command,
        cwd=parse_template(".", ()),
        environment=tuple(
            (parse_template(name, ()), parse_template(value, PLACEHOLDERS)) for name, value in LAB_ENVIRONMENT
        ),
        state=parse_template(STATE_FOLDER, PLACEHOLDERS),
    )


class _Reader:
    """Reads templates that may use `blanks`, and keeps which of them were used."""

    def __init__(self, blanks: Mapping[str, str]) -> None:
        self.blanks = blanks
        self.used: set[str] = set()
        self._known = (*PLACEHOLDERS, *(BLANK + name for name in blanks))

    def template(self, item: Item) -> Template:
        return self._parse(item, item.text())

    def command(self, item: Item) -> tuple[Template, ...]:
        if item.is_list():
            parts = tuple(self.template(part) for part in item.items())
        else:
            try:
                words = shlex.split(item.text())
            except ValueError as error:
                raise item.fault(f"this is no command line: {error}.") from error
            parts = tuple(self._parse(item, word) for word in words)
        if not parts or not parts[0].pieces:
            raise item.fault("a command names a program.")
        return parts

    def state(self, item: Item | None) -> Template | None:
        if item is not None and re.fullmatch(r"\{home\}/(?!.*\.\.)[^{}]+", item.text()) is None:
            raise item.fault("`state` is a folder below the temporary home, such as `{home}/state`.")
        return None if item is None else self.template(item)

    def environment(self, item: Item | None) -> tuple[tuple[Template, Template], ...]:
        return tuple(self._variables(item)) if item else ()

    def _variables(self, item: Item) -> Iterator[tuple[Template, Template]]:
        for key, value in item.entries():
            name = self.template(key)
            if not name.names() and VARIABLE.fullmatch(key.text()) is None:
                raise key.fault("this is no name of an environment variable.")
            if key.text() == HOME:
                raise key.fault("HOME is decided by `home: temporary` or `home: inherit`.")
            yield name, self.template(value)

    def _parse(self, item: Item, text: str) -> Template:
        try:
            template = parse_template(text, self._known)
        except TemplateError as error:
            raise item.fault(error.message, error.nearest, error.word) from error
        self.used.update(template.blanks())
        return template


def _blanks(item: Item | None) -> dict[str, str]:
    blanks: dict[str, str] = {}
    for key, value in item.entries() if item else ():
        if _BLANK_NAME.fullmatch(key.text()) is None:
            raise key.fault("a blank's name has small letters, digits and `_`.")
        blanks[key.text()] = value.text()
    return blanks


def _inherit(item: Item | None) -> tuple[str, ...]:
    for name in item.items() if item else ():
        if VARIABLE.fullmatch(name.text().removesuffix("*")) is None:
            raise name.fault("this is no name of an environment variable; one may end with `*`.")
        if name.text() == HOME:
            raise name.fault("HOME is decided by `home: temporary` or `home: inherit`.")
    return tuple(name.text() for name in item.items()) if item else ()


def _choice(item: Item | None, due: tuple[str, ...], default: str) -> str:
    if item is None:
        return default
    if item.text() not in due:
        raise item.fault(f"`{item.text()}` is none of {', '.join(due)}.", nearest_word(item.text(), due))
    return item.text()


def _ready(item: Item | None) -> float:
    return _seconds(item.members(("within",)).get("within") if item else None, Profile.ready_within)


def _stop_signal(item: Item | None) -> signal.Signals:
    chosen = item.members(("signal", "grace")).get("signal") if item else None
    return signal.Signals[_choice(chosen, _SIGNALS, Profile.stop_signal.name)]


def _grace(item: Item | None) -> float:
    return _seconds(item.members(("signal", "grace")).get("grace") if item else None, Profile.grace)


def _seconds(item: Item | None, default: float) -> float:
    if item is None:
        return default
    try:
        return parse_duration(item.text())
    except ValueError as error:
        raise item.fault(f"{error}.") from error
