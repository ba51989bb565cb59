"""docker-compose.yml, Dockerfile and docs/containers.md agree with each other and with the lab; no container is run."""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest
import yaml

import lab
from lab.cli import cli
from lab.faults.api.config import load_config
from lab.sut.profile import LAB_ENVIRONMENT
from tests.compose import (
    LAB_IMAGE,
    ROOT,
    Front,
    copied,
    dockerfile,
    fronts,
    is_lab,
    lab_arguments,
    port_options,
    raw_compose,
    script,
    services,
    variables,
)

PROFILES = {"run", "nightly", "doubles", "local-agent", "partner", "demo"}
INSTALL_SECONDS = 400
SCHEMA = json.loads((ROOT / "tests" / "compose.schema.json").read_text("utf-8"))
LAB_SERVICES = sorted(name for name, service in services().items() if is_lab(service))
FRONTS = {front.name: front for front in fronts()}

Change = Callable[[dict[str, Any]], object]


def validate(compose: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(compose)


def resolve(arguments: Sequence[str]) -> click.Context:
    """The command that `lab` would run, with its options read and nothing carried out."""
    context = cli.make_context("lab", list(arguments))
    while isinstance(context.command, click.Group):
        # Click keeps what is left for the subcommand here.
        words = [*context._protected_args, *context.args]
        name, command, rest = context.command.resolve_command(context, words)
        assert command is not None
        context = command.make_context(name, rest, parent=context)
    return context


def own_ports(front: Front) -> set[int]:
    """The ports that the services behind it listen on."""
    return {port for name in front.behind for port in port_options(lab_arguments(services()[name]))}


def listening(name: str) -> set[int]:
    """The ports of the network namespace that a service is in, and those that it has on this machine."""
    where = services()[name].get("network_mode", f"service:{name}").removeprefix("service:")
    if where not in FRONTS:
        # Toxiproxy's own server.
        return {8474}
    front = FRONTS[where]
    return {front.api} | front.listens | own_ports(front) | set(front.published.values())


def test_it_is_a_compose_file() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    validate(raw_compose())


@pytest.mark.parametrize(
    "change",
    [
        lambda made: made.update(version="3"),
        lambda made: made["services"]["run"].update(imagee="lab"),
        lambda made: made["services"]["run"].pop("image"),
        lambda made: made["services"]["run"].update(command="run scenarios"),
        lambda made: made["services"]["run"].update(privileged=True),
        lambda made: made["services"]["toxiproxy"].update(image="ghcr.io/shopify/toxiproxy:latest"),
        lambda made: made["services"]["toxiproxy"].update(image="ghcr.io/shopify/toxiproxy"),
        lambda made: made["services"]["toxiproxy"]["healthcheck"].update(interval="soon"),
        lambda made: made["services"]["faults"].update(ports=["8474:8474"]),
        lambda made: made["services"]["faults"].update(ports=["0.0.0.0:${LAB_FAULTS_PORT:-8474}:8474"]),
        lambda made: made["services"]["faults"].update(profiles=[]),
        lambda made: made["services"]["gateway"]["depends_on"]["faults"].update(condition="healthy"),
        lambda made: made["volumes"]["runs"].update(size="1g"),
    ],
)
def test_the_schema_refuses(change: Change) -> None:
    made = copy.deepcopy(raw_compose())
    change(made)
    with pytest.raises(jsonschema.ValidationError):
        validate(made)


@pytest.mark.parametrize("name", LAB_SERVICES)
def test_every_command_exists(name: str) -> None:
    arguments = lab_arguments(services()[name])
    assert not isinstance(resolve(arguments).command, click.Group)


def test_a_command_that_does_not_exist_is_seen() -> None:
    for wrong in (["runn"], ["serve", "gatewayy"], ["serve", "gateway", "--prot", "1"], ["run"]):
        with pytest.raises(click.UsageError):
            resolve(wrong)


@pytest.mark.parametrize("name", LAB_SERVICES)
def test_every_file_of_a_command_is_in_the_image(name: str) -> None:
    words = [script(services()[name]) or "", *lab_arguments(services()[name])]
    words += services()[name].get("healthcheck", {}).get("test", [])
    words += services()[name].get("environment", {}).values()
    files = re.findall(r"\b(?:scenarios|fixtures|docker)\b[\w./-]*", " ".join(words))
    assert all((ROOT / file).exists() for file in files), files
    assert {file.split("/")[0] for file in files} <= set(copied())


def test_profiles() -> None:
    made = services()
    assert {profile for service in made.values() for profile in service["profiles"]} == PROFILES
    for name, service in made.items():
        needed = [
            *service.get("depends_on", {}),
            service.get("network_mode", f"service:{name}").removeprefix("service:"),
        ]
        for other in needed:
            assert set(service["profiles"]) <= set(made[other]["profiles"]), f"{name} needs {other}"


def test_each_of_the_doubles_is_a_service() -> None:
    serve = cli.get_command(click.Context(cli), "serve")
    assert isinstance(serve, click.Group)
    served = {
        lab_arguments(services()[name])[1] for name in LAB_SERVICES if lab_arguments(services()[name])[0] == "serve"
    }
    assert served == set(serve.commands)


def test_images_are_pinned() -> None:
    assert f"lab:{lab.__version__}" == LAB_IMAGE
    assert {service["image"] for service in services().values()} == {LAB_IMAGE, "ghcr.io/shopify/toxiproxy:2.12.0"}
    bases = [one.rest for one in dockerfile() if one.word == "FROM"]
    assert all(re.fullmatch(r"python:3\.\d+\.\d+-slim-[a-z]+", base) for base in bases), bases
    assert len(bases) == 1


@pytest.mark.parametrize("name", sorted(FRONTS))
def test_ports_fit_together(name: str) -> None:
    front = FRONTS[name]
    assert set(front.published) == front.listens | {front.api}
    assert front.upstreams == own_ports(front)
    # What a double prints of itself holds on this machine too.
    assert all(front.published[proxy.listen] == proxy.upstream for proxy in front.proxies)
    assert [spec.spec.name for spec in load_config(ROOT / front.config)] == [proxy.name for proxy in front.proxies]


def test_only_proxies_are_published_and_each_at_a_port_of_its_own() -> None:
    published = {name: service["ports"] for name, service in services().items() if "ports" in service}
    assert set(published) == set(FRONTS)
    outer = [port for front in FRONTS.values() for port in front.published.values()]
    assert len(outer) == len(set(outer))
    assert all(mapping.startswith("127.0.0.1:") for mappings in published.values() for mapping in mappings)


@pytest.mark.parametrize("name", [*LAB_SERVICES, "toxiproxy"])
def test_every_port_that_is_spoken_of_is_listened_on(name: str) -> None:
    service = services()[name]
    words = " ".join([*service["command"], *service.get("healthcheck", {}).get("test", [])])
    spoken = {int(port) for port in re.findall(r"(?:\b127\.0\.0\.1:|', |ready\.py )(\d{4,5})\b", words)}
    assert spoken <= listening(name)


def test_every_variable_is_explained_and_used() -> None:
    rows = re.findall(
        r"^\| `([A-Z0-9_]+)` \| `?([^|`]+?)`? \|", (ROOT / "docs" / "containers.md").read_text("utf-8"), re.M
    )
    assert variables() == dict(rows)


def test_the_agent_is_told_by_names_that_it_reads() -> None:
    told = set(services()["local-agent"]["environment"])
    told |= set(re.findall(r"\b(LAB_\w+)=", script(services()["local-agent"]) or ""))
    assert told < {name for name, _ in LAB_ENVIRONMENT}


def test_no_secret_stands_in_it() -> None:
    for service in services().values():
        for name in service.get("environment", {}):
            assert not re.search("TOKEN|KEY|SECRET|PASSWORD", name)
    # Credentials are printed, so what prints them is led to the volume; the log stays empty of them.
    for name in ("gateway", "agent2", "store", "partner"):
        assert (script(services()[name]) or "").endswith(f"> /run/lab/{name}")


@pytest.mark.parametrize("name", sorted(services()))
def test_what_stays_up_is_looked_after(name: str) -> None:
    service = services()[name]
    ends = is_lab(service) and lab_arguments(service)[0] != "serve"
    if ends:
        assert service["healthcheck"] == {"disable": True}
    elif name in FRONTS:
        # The image's own check is made for it.
        (check,) = [one.rest for one in dockerfile() if one.word == "HEALTHCHECK"]
        assert f", {port_options(lab_arguments(service))[0]}," in check
    else:
        assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")


def test_the_image_has_no_rights_and_no_more_than_it_needs() -> None:
    assert [one.rest for one in dockerfile() if one.word == "USER"] == ["lab"]
    after = [one.word for one in dockerfile()]
    assert "RUN" not in after[after.index("USER") :]
    everything, *kept = (ROOT / ".dockerignore").read_text("utf-8").splitlines()[1:]
    assert everything == "*"
    assert {line.removeprefix("!") for line in kept if line.startswith("!")} == set(copied())
    assert all((ROOT / source).exists() for source in copied())
    # The owner that the volume in memory is mounted for.
    (made,) = [one.rest for one in dockerfile() if "useradd" in one.rest]
    uid = made.split()[made.split().index("--uid") + 1]
    assert f"uid={uid}," in raw_compose()["volumes"]["handover"]["driver_opts"]["o"]


def test_the_images_own_command_exists() -> None:
    (arguments,) = [json.loads(one.rest) for one in dockerfile() if one.word == "CMD"]
    assert resolve(arguments).info_name == "faults"


def test_the_docs_name_profiles_that_there_are() -> None:
    named = re.findall(r"--profile (\S+)", (ROOT / "docs" / "containers.md").read_text("utf-8"))
    assert named
    assert set(named) <= PROFILES


@pytest.mark.slow
@pytest.mark.timeout(INSTALL_SECONDS)
def test_the_images_install_steps_work_in_a_clean_folder(tmp_path: Path) -> None:
    """With what is copied and nothing else, and then a scenario runs."""
    image, venv, folder = tmp_path / "image", tmp_path / "venv", tmp_path / "out"
    image.mkdir()
    for source, target in copied().items():
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, image / target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, image / target)
    environment = {**os.environ, "PATH": f"{venv}/bin:{os.environ['PATH']}"}
    for name in ("PYTHONPATH", "VIRTUAL_ENV"):
        environment.pop(name, None)

    def run(*command: str) -> str:
        done = subprocess.run(
            command, cwd=image, env=environment, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    steps = [one.rest for one in dockerfile() if one.word == "RUN" and re.search(r"\b(pip|venv)\b", one.rest)]
    assert len(steps) == 2
    for step in steps:
        run("sh", "-euc", step.replace("/opt/lab", str(venv)).replace("python -m", f"{shutil.which('python3')} -m"))
    assert lab.__version__ in run("lab", "--version")
    assert "PASS" in run("lab", "run", "scenarios/chat-answer.yaml", "--out", str(folder))


def test_no_key_stands_twice() -> None:
    """YAML would take the last one in silence."""

    class Strict(yaml.SafeLoader):
        """Refuses a key that stands twice in one mapping."""

    def mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[str, Any]:
        keys = [key.value for key, _ in node.value]
        assert len(keys) == len(set(keys)), keys
        loader.flatten_mapping(node)
        return dict(loader.construct_pairs(node, deep=True))

    Strict.add_constructor("tag:yaml.org,2002:map", mapping)
    assert yaml.load((ROOT / "docker-compose.yml").read_text("utf-8"), Strict) == raw_compose()
