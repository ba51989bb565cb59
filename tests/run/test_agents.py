"""How a Local Agent is had."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import cast

import pytest

from lab.errors import UsageError
from lab.journal.events import SutChanged
from lab.protocol.contract import Contract, default_contract_folder
from lab.run import agents
from lab.run.agents import SutChoice, how, make_sut, profile_of, start_all
from lab.run.suts import ATTACH_SECONDS, AttachedSut, ProgramSut, ReferenceSut, Surroundings, Sut
from lab.scenario.model import LocalAgentSpec
from tests.command_line import ROOT, shown_environment
from tests.run.made import context

TOKEN = "t" * 43
PROFILES = ROOT / "scenarios" / "profiles"


def around(home: Path) -> Surroundings:
    return Surroundings(
        tenant_id="00000000-0000-4000-8000-000000000001",
        agent_id="00000000-0000-4000-8000-000000000002",
        gateway_url="ws://127.0.0.1:1/agent",
        gateway_token=TOKEN,
        agent2_url="http://127.0.0.1:2",
        agent2_token=TOKEN,
        workspaces={"ws-main": home / "workspace"},
        folders={"ws-main": home / "workspace"},
        trusted_keys={"k": b"\0" * 32},
        home=home,
        chat=True,
        contract_folder=default_contract_folder(),
    )


def make(
    home: Path,
    use: str | None = None,
    shown: list[str] | None = None,
    spec: LocalAgentSpec | None = None,
    surroundings: Surroundings | None = None,
) -> Sut:
    choice = SutChoice(use, {}, PROFILES, home, (shown if shown is not None else []).append)
    contract = Contract.load(default_contract_folder(), "2.3")
    wanted = spec or LocalAgentSpec("local_agent")
    return make_sut(context(), wanted, surroundings or around(home), contract, choice, {}, ())


def test_the_command_line_goes_before_the_scenario(tmp_path: Path) -> None:
    """Each way has its kind, and its patience until the gateway must hear of it."""
    assert isinstance(make(tmp_path), ReferenceSut)
    assert isinstance(make(tmp_path, use="attach"), AttachedSut)
    assert isinstance(make(tmp_path, use="lab-reference"), ProgramSut)
    assert isinstance(make(tmp_path, use="reference", spec=LocalAgentSpec("local_agent", use="attach")), ReferenceSut)
    assert [make(tmp_path, use=use).patience for use in ("reference", "attach", "lab-reference")] == [
        0.0,
        ATTACH_SECONDS,
        30.0,
    ]


@pytest.mark.parametrize(
    ("use", "word"),
    [("reference", "reference"), ("attach", "attach"), ("lab-reference", "command"), ("node a.js", "command")],
)
def test_what_the_journal_calls_it(use: str, word: str) -> None:
    """Profile and command line are one kind."""
    assert how(use) == word


@pytest.mark.parametrize(
    ("use", "settings", "window"),
    [
        ("reference", {}, 8),
        ("reference", {"max_in_flight": 3}, 3),
        ("node a.js", {}, 8),
        ("attach", {}, None),
    ],
)
@pytest.mark.req("LA-005")
def test_the_window_that_it_keeps_to(tmp_path: Path, use: str, settings: dict[str, object], window: int | None) -> None:
    """What its settings or its environment say; nobody knows those of an attached one."""
    assert make(tmp_path, use=use, spec=LocalAgentSpec("local_agent", settings=settings)).facts.get("window") == window


@pytest.mark.parametrize(
    ("told", "window"), [(None, 8), ("", 8), ("3", 3), ("0", 1), ("999", 64), ("many", 8), ("²", 8), ("-1", 8)]
)
@pytest.mark.req("LA-005")
def test_the_window_of_a_program_is_in_its_environment(told: str | None, window: int) -> None:
    """Within the bounds of the setting."""
    assert agents._window({} if told is None else {"LOCAL_AGENT_V2_MAX_IN_FLIGHT": told}) == window


@pytest.mark.parametrize("chat", [True, False])
@pytest.mark.req("SQ-009", "CH-035")
async def test_what_the_reference_agent_has_a_handler_for(tmp_path: Path, chat: bool) -> None:
    """Told for the laws, and true of the agent itself."""
    sut = make(tmp_path, surroundings=replace(around(tmp_path), chat=chat))
    assert isinstance(sut, ReferenceSut)
    work = sut._agent._work
    await work.start()
    kinds = ("file.list", "job.stream", "chat.session", "scan.report", "diff")
    assert tuple(kind for kind in kinds if work.serves(kind)) == sut.facts["serves"]
    await work.close()
    assert sut.facts["handles"] == ("job.assign", "job.cancel", "approval.decision", "content.request")


@pytest.mark.parametrize("use", ["node agent.js", "./agent", "/bin/agent"])
def test_a_blank_or_a_slash_makes_a_command_line(use: str) -> None:
    """Anything else is a profile's name."""
    assert len(profile_of(use, PROFILES).command) == len(use.split())
    with pytest.raises(UsageError, match="there is no profile `agent`"):
        profile_of("agent", PROFILES)


def test_settings_of_the_reference_agent_fit_no_other(tmp_path: Path) -> None:
    """A sentence says so."""
    spec = LocalAgentSpec("local_agent", settings={"stream_hold": 1.0})
    for use in ("attach", "lab-reference", "node a.js"):
        with pytest.raises(UsageError, match="`settings` and `clock` are the reference agent's"):
            make(tmp_path, use=use, spec=spec)
    make(tmp_path, spec=spec)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"stream_hold": 8}, None),
        ({"inline_16k": False, "polls": 2}, None),
        ({"inline_16": False}, r"the reference agent has no setting `inline_16`; it has .*inline_16k"),
        ({"chat": False}, "has no setting `chat`"),
        ({"agent_id": "x"}, "has no setting `agent_id`"),
        ({"stream_hold": "8s"}, r"the setting `stream_hold` is a float, such as 8\.0"),
        ({"polls": True}, "the setting `polls` is a int, such as 16"),
        ({"inline_16k": 0}, "the setting `inline_16k` is a bool, such as True"),
    ],
)
def test_settings_are_those_that_the_reference_agent_has(
    tmp_path: Path, settings: dict[str, object], words: str | None
) -> None:
    """With values of their types; what the scenario says elsewhere, or the run draws, is none of them."""
    spec = LocalAgentSpec("local_agent", settings=settings)
    if words is None:
        make(tmp_path, spec=spec)
        return
    with pytest.raises(UsageError, match=words):
        make(tmp_path, spec=spec)


async def test_an_attached_agent_is_shown_its_environment_once_it_is_waited_for(tmp_path: Path) -> None:
    """Not before; it is in the journal without a word of it."""
    shown: list[str] = []
    sut = make(tmp_path, use="attach", shown=shown)
    assert shown == []
    assert isinstance(sut, AttachedSut)
    ctx = context()
    sut._ctx = ctx
    await sut.start()
    await sut.close()
    assert sut.death() is None
    told = shown_environment("".join(shown))
    assert told["LAB_GATEWAY_TOKEN"] == TOKEN
    assert "LAB_WORKSPACES" in told
    assert [entry.event for entry in ctx.journal.entries] == [SutChanged("local_agent", "attached")]
    assert shown[0].startswith("# start your Local Agent `local_agent` within 600 s with\n")


class FakeSut:
    """Starts as it is told."""

    name = "fake"
    patience = 0.0
    state: Path | None = None
    facts: Mapping[str, object] = MappingProxyType({})

    def __init__(self, error: Exception | None = None) -> None:
        self.may_start = asyncio.Event()
        self.started = False
        self._error = error

    async def start(self) -> None:
        if self._error is not None:
            raise self._error
        await self.may_start.wait()
        self.started = True

    async def close(self) -> None:
        """Nothing to end."""

    def death(self) -> str | None:
        return None


async def test_none_is_starting_any_more_when_one_could_not() -> None:
    """Else it would be ended before it had begun, and live on."""
    slow, broken = FakeSut(), FakeSut(UsageError("no program"))
    starting = asyncio.create_task(start_all(cast("dict[str, Sut]", {"slow": slow, "broken": broken})))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not starting.done()
    slow.may_start.set()
    with pytest.raises(UsageError, match="no program"):
        await asyncio.wait_for(starting, 10)
    assert slow.started


def test_no_secret_is_in_the_repr_of_surroundings(tmp_path: Path) -> None:
    """They are handed around."""
    assert TOKEN not in repr(around(tmp_path))
