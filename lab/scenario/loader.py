"""Loads scenarios: from YAML files to the dataclasses of lab.scenario.model.

    text ─ yaml_places ─ overrides ─ shape (the JSON Schema) ─ read_* (names, order, files, frames) ─ Scenario

Everything wrong with a file is reported at once: ScenarioErrors, in file order. What keeps a file from being read at
all is a single UsageError.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import yaml

from lab.errors import MisuseError, UsageError
from lab.scenario.findings import Findings, short
from lab.scenario.model import Scenario
from lab.scenario.names import gather
from lab.scenario.overrides import override
from lab.scenario.partner_names import is_partner_leg
from lab.scenario.read_expect import read_expect, read_must_judge
from lab.scenario.read_participants import (
    check_participant_names,
    read_agent2s,
    read_gateways,
    read_links,
    read_local_agents,
)
from lab.scenario.read_partner import read_partner
from lab.scenario.read_steps import read_steps
from lab.scenario.reading import Reading, duration, text, texts, whole
from lab.scenario.shape import sound
from lab.scenario.yaml_places import MapNode, parse_untrusted, plain, resolve_plain

MAX_BYTES = 262_144
DEFAULT_DEADLINE = 60.0
SUFFIXES = (".yaml", ".yml")
BESIDE = ("profiles", "fixtures")
RUN_MARK = "journal.jsonl"
"""What lies in the folder of a run, beside its copy of the scenario."""
ROOT_MARKS = ("fixtures", "pyproject.toml")


def load_scenario(
    path: Path,
    *,
    known_laws: Collection[str],
    overrides: Mapping[str, str] | None = None,
    root: Path | None = None,
    directions: Mapping[str, str] | None = None,
    known_figures: Collection[str] | None = None,
    known_partner_laws: Collection[str] = (),
) -> Scenario:
    """The scenario in the file `path`, with `overrides` (dotted path to value) applied.

    `known_laws` are the ids that `must_judge` may name, `known_partner_laws` those in the partner leg. Files that the
    scenario names are looked for below `root`; see
    `project_root` for None. `directions` maps each frame type to cp-to-la, la-to-cp or both; None takes the contract's.
    `known_figures` are the names that `figures.<name>` may have; None takes any.
    Raises ScenarioErrors with all mistakes of the file, or UsageError if it cannot be read or an override has no place.
    """
    source = _read(path)
    tree, doubles = parse_untrusted(source, str(path))
    findings = Findings(str(path))
    for double in doubles:
        findings.note(double)
    tree = override(tree, overrides or {})
    fitting = sound(tree, findings)
    if not isinstance(fitting, MapNode):
        findings.report()
        raise MisuseError(f"{path}: the scenario has no sound part, yet nothing was found wrong with it")
    deadline = duration(findings, fitting, "deadline") or DEFAULT_DEADLINE
    laws = known_partner_laws if is_partner_leg(tree) else known_laws
    reading = Reading(findings, gather(tree), root or project_root(path), deadline, laws, known_figures)
    _check_head(reading, fitting, path)
    scenario = _scenario(reading, fitting, path, directions)
    findings.report()
    return scenario


def resolved_yaml(path: Path, overrides: Mapping[str, str] | None = None) -> str:
    """The scenario as it was run: the file's own text, or with `overrides` its values with these applied."""
    source = _read(path)
    if not overrides:
        return source
    tree, _ = parse_untrusted(source, str(path))
    head = "".join(f"# --set {_one_line(key)}={_one_line(value)}\n" for key, value in overrides.items())
    return head + as_text(plain(override(tree, overrides)))


def find_scenarios(paths: Iterable[Path]) -> list[Path]:
    """The scenario files that `paths` name, sorted and each once; a folder stands for all scenarios below it.

    Raises UsageError for a path that is not there, and for a folder without scenarios.
    """
    found: set[Path] = set()
    for path in paths:
        if path.is_dir():
            beside = path.resolve().name in BESIDE
            inside = [file for file in path.rglob("*") if not beside and _is_scenario(file, path)]
            if not inside:
                raise UsageError(f"{path}: there is no scenario (*.yaml) in this folder.")
            found.update(inside)
        elif path.exists():
            found.add(path)
        else:
            raise UsageError(f"{path}: there is no such file or folder.")
    return sorted(found)


def _is_scenario(file: Path, below: Path) -> bool:
    """Whether `file` is a scenario by its name; profiles, fixtures, hidden folders and runs lie beside them."""
    folders = file.relative_to(below).parts[:-1]
    hidden = any(folder.startswith(".") or folder in BESIDE for folder in folders)
    return file.suffix in SUFFIXES and not hidden and file.is_file() and not (file.parent / RUN_MARK).exists()


def project_root(path: Path) -> Path:
    """The nearest folder above the file `path` that holds `fixtures/` or `pyproject.toml`; else the file's folder."""
    folder = path.resolve().parent
    for candidate in (folder, *folder.parents):
        if any((candidate / mark).exists() for mark in ROOT_MARKS):
            return candidate
    return folder


def _read(path: Path) -> str:
    try:
        if path.is_dir():
            raise UsageError(f"{path}: this is a folder; due is a scenario file.")
        if path.exists() and not path.is_file():
            raise UsageError(f"{path}: this is no regular file; due is a scenario file.")
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file.") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: the file cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    if len(raw) > MAX_BYTES:
        raise UsageError(f"{path}: the file is larger than {MAX_BYTES // 1024} KiB, too large for a scenario.")
    try:
        source = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path}: the file is not UTF-8 text.") from None
    if "\0" in source:
        raise UsageError(f"{path}: the file is binary; due is a scenario in YAML.")
    if not source.strip():
        raise UsageError(f"{path}: the file is empty; due is a scenario in YAML.")
    return source


def _check_head(reading: Reading, root: MapNode, path: Path) -> None:
    name, about = root.members.get("scenario"), root.members.get("about")
    if name is not None and plain(name) != path.stem:
        message = (
            f"seen `{plain(name)}`, due `{short(path.stem)}`, the file's name without {path.suffix or 'an ending'}."
        )
        reading.findings.add(name, message)
    if about is not None and "should" in str(plain(about)).lower().split():
        reading.findings.add(about, "seen the word `should`; say what is so, as a promise.")


def _scenario(reading: Reading, root: MapNode, path: Path, directions: Mapping[str, str] | None) -> Scenario:
    partner = read_partner(reading, root)
    if partner is None:
        check_participant_names(reading, root)
    return Scenario(
        name=text(root, "scenario") or "",
        about=text(root, "about") or "",
        file=path,
        seed=whole(root, "seed"),
        deadline=reading.deadline,
        gateways=read_gateways(reading, root) if partner is None else {},
        agent2s=read_agent2s(reading, root) if partner is None else {},
        local_agents=read_local_agents(reading, root) if partner is None else {},
        partner=partner,
        links=read_links(reading, root),
        steps=read_steps(reading, root, directions, partner),
        expect=read_expect(reading, root),
        must_judge=read_must_judge(reading, root),
        must_judge_line=root.keys["must_judge"].line if "must_judge" in root.keys else 0,
        requires=texts(root, "requires"),
        tags=texts(root, "tags"),
        patient=plain(root.members["patient"]) is True if "patient" in root.members else False,
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


class _Dumper(yaml.SafeDumper):
    """Quotes every text that this language, or an older YAML, would read as something else."""


def _represent_text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = '"' if resolve_plain(value) != value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _represent_text)


def as_text(value: object) -> str:
    """A mapping or list as YAML, which is read back as what it was."""
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110))
