"""A link on a Toxiproxy server: the changes of a link, in order, and nothing left behind."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, cast

import pytest

from lab.errors import MisuseError
from lab.faults.fault_link import FaultLink, embedded, is_embedded
from lab.faults.specs import ToxicSpec
from lab.faults.toxiproxy_calls import ServerLost, ToxiproxyFault
from lab.faults.toxiproxy_link import ProxiesLeft, ServerCalls, ToxiproxyLink
from lab.journal.events import LinkChanged
from tests.run.made import context


class NotingServer:
    """Notes calls; one that is held back goes on when it is let."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.fails: str | None = None
        self.error = ToxiproxyFault("it broke")
        self.gate = threading.Event()
        self.gate.set()

    def create(self, _name: str, _upstream: object, *, enabled: bool = True) -> tuple[str, int]:
        self._note("create")
        return "127.0.0.1", 5

    def __getattr__(self, act: str) -> Any:
        return lambda _proxy, what="": self._note(f"{act} {_word(what)}".strip())

    def _note(self, what: str) -> None:
        assert self.gate.wait(10)
        self.log.append(what)
        if self.fails == what:
            raise self.error


def _word(what: object) -> str:
    return f"{what.name} {what.attributes.get('latency')}" if isinstance(what, ToxicSpec) else str(what)


class Bench:
    def __init__(self, **members: Any) -> None:
        self.ctx = context()
        self.server = NotingServer()
        self.calls = ServerCalls(self.ctx, cast(Any, self.server))
        self.link = ToxiproxyLink(self.ctx, self.calls, "gateway", ("127.0.0.1", 9), **members)

    @property
    def changes(self) -> list[tuple[str, float]]:
        events = [entry.event for entry in self.ctx.journal.entries]
        return [(event.change, event.seconds) for event in events if isinstance(event, LinkChanged)]


async def test_changes_are_made_in_order_and_told() -> None:
    bench = Bench()
    link = bench.link
    await link.start()
    assert link.address == ("127.0.0.1", 5)
    link.cut()
    link.cut()
    told: list[str] = []
    link.add_toxic(ToxicSpec("latency", "t", attributes={"latency": 7}), lambda: told.append("t"))
    assert told == []
    link.remove_toxic("t")
    link.heal()
    link.heal()
    await link.close()
    await link.close()
    assert bench.server.log == ["create", "disable", "add_toxic t 7", "remove_toxic t", "enable", "delete"]
    assert [change for change, _ in bench.changes] == ["cut", "toxic-added", "toxic-removed", "healed"]
    assert (bench.ctx.defects, told) == ([], ["t"])


async def test_a_delay_is_two_latencies() -> None:
    bench = Bench(delay=0.05)
    link = bench.link
    await link.start()
    link.set_delay(0.05)
    link.set_delay(2)
    link.set_delay(0.0001)
    link.set_delay(0)
    link.set_delay(1)
    link.heal()
    assert link.delay == 0
    await link.close()
    both = ("delay-upstream", "delay-downstream")
    assert bench.server.log == [
        "create",
        *(f"add_toxic {name} 50" for name in both),
        *(f"update_toxic {name} 2000" for name in both),
        *(f"update_toxic {name} 1" for name in both),
        *(f"remove_toxic {name}" for name in both),
        *(f"add_toxic {name} 1000" for name in both),
        *(f"remove_toxic {name}" for name in both),
        "delete",
    ]
    with pytest.raises(MisuseError):
        link.set_delay(-1)


async def test_a_delay_that_stands_already_is_told_to_who_asks_for_the_same() -> None:
    """Once it stands; no delay is none to tell."""
    bench = Bench()
    await bench.link.start()
    told: list[str] = []
    bench.link.set_delay(0, lambda: told.append("none"))
    bench.link.set_delay(0.05, lambda: told.append("first"))
    bench.link.set_delay(0.05, lambda: told.append("second"))
    assert told == []
    await bench.link.settled()
    assert told == ["first", "second"]
    assert bench.server.log == ["create", "add_toxic delay-upstream 50", "add_toxic delay-downstream 50"]
    await bench.link.close()


async def test_settled_waits_for_what_was_begun() -> None:
    bench = Bench()
    await bench.link.start()
    bench.server.gate.clear()
    bench.link.cut()
    settled = asyncio.ensure_future(bench.link.settled())
    await asyncio.sleep(0)
    assert not settled.done()
    bench.server.gate.set()
    await settled
    assert bench.server.log == ["create", "disable"]
    await bench.link.close()


async def test_a_change_that_failed_ends_the_run() -> None:
    bench = Bench()
    await bench.link.start()
    bench.server.fails = "disable"
    bench.link.cut()
    await bench.link.settled()
    assert [str(defect) for defect in bench.ctx.defects] == ["it broke"]
    await bench.link.close()


async def test_a_start_that_was_cancelled_leaves_no_proxy() -> None:
    """The thread goes on creating it, and the close waits for that."""
    bench = Bench()
    bench.server.gate.clear()
    starting = asyncio.ensure_future(bench.link.start())
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    closing = asyncio.ensure_future(bench.link.close())
    await asyncio.sleep(0)
    bench.server.gate.set()
    await closing
    assert bench.server.log == ["create", "delete"]


async def test_a_server_that_is_lost_is_tried_once_more_and_what_is_left_there_is_named() -> None:
    """No call behind the first waits for it."""
    bench = Bench()
    links = [bench.link] + [
        ToxiproxyLink(bench.ctx, bench.calls, name, ("127.0.0.1", 9)) for name in ("agent2", "never-started")
    ]
    for link in links[:2]:
        await link.start()
    bench.server.fails, bench.server.error = "disable", ServerLost("it hangs.")
    links[0].cut()
    links[1].cut()
    await links[1].settled()
    assert bench.ctx.defects == [bench.server.error] * 2
    bench.server.fails = "delete"
    for link in links:
        await link.close()
    assert bench.server.log == ["create", "create", "disable", "delete"]
    names = tuple(f"{bench.calls.prefix}-{name}" for name in ("gateway", "agent2"))
    with pytest.raises(ProxiesLeft, match=f"it hangs. .*could not be removed: {', '.join(names)}") as left:
        bench.calls.check_removed()
    assert left.value.names == names
    bench.calls.check_removed()


async def test_a_server_that_came_back_removes_what_the_run_had() -> None:
    bench = Bench()
    await bench.link.start()
    bench.server.fails, bench.server.error = "disable", ServerLost("it hangs.")
    bench.link.cut()
    await bench.link.settled()
    await bench.link.close()
    assert bench.server.log == ["create", "disable", "delete"]
    bench.calls.check_removed()


async def test_a_proxy_that_cannot_be_removed_spares_no_other() -> None:
    bench = Bench()
    other = ToxiproxyLink(bench.ctx, bench.calls, "agent2", ("127.0.0.1", 9))
    for link in (bench.link, other):
        await link.start()
    bench.server.fails = "delete"
    for link in (bench.link, other):
        await link.close()
    assert bench.server.log == ["create", "create", "delete", "delete"]
    with pytest.raises(ProxiesLeft, match="it broke"):
        bench.calls.check_removed()


async def test_before_its_start() -> None:
    bench = Bench()
    with pytest.raises(MisuseError):
        _ = bench.link.address
    await bench.link.close()
    assert bench.server.log == []


async def test_no_two_runs_call_their_proxies_alike() -> None:
    calls = [ServerCalls(context(), cast(Any, None)).prefix]
    other = context()
    other._secret_seed = 2
    assert ServerCalls(other, cast(Any, None)).prefix not in calls


async def test_it_is_a_link_without_what_the_engine_alone_can_do() -> None:
    link: FaultLink = Bench().link
    assert not is_embedded(link)
    with pytest.raises(MisuseError):
        embedded(link)
