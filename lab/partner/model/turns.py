"""The turn runner: claims accepted runs, lets their turns run, ends them by control, sweeps unsent files."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping

from lab.partner.model.attachments import next_sweep_ms, sweep
from lab.partner.model.history import keep_answer
from lab.partner.model.mcp_client import McpLimits, open_http
from lab.partner.model.parts import Parts
from lab.partner.model.runs import find_run
from lab.partner.model.script import ScriptShelf
from lab.partner.model.script_reading import load_scripts
from lab.partner.model.settings import PartnerSettings
from lab.partner.model.store_calls import StoreHttp
from lab.partner.model.turn import Effect, Turn, TurnSetting
from lab.partner.model.turn_record import INTERRUPTED, finish_run
from lab.partner.model.usage import PriceTable
from lab.partner.model.words import RunStatus

KEPT_LINES = 1000
"""Lines of the turn log that a control can still list (TM-052)."""


def shelf_of(settings: PartnerSettings) -> ScriptShelf:
    """The scripts of every agent; whatever is wrong with one raises `ScenarioError`."""
    return ScriptShelf(
        {agent.agent_id: load_scripts(agent.script) for agent in settings.agents if agent.script is not None}
    )


class TurnRunner:
    """The turns of one life of the model. Call `start` once, then `stop`, which may be repeated.

    `shelf` None takes the scripts of the settings. It listens to the bell of `parts`: whoever stores an accepted run,
    or changes what a run may do, rings it.
    `write_line` takes each line of the turn log, for example to stdout.
    """

    def __init__(
        self,
        parts: Parts,
        shelf: ScriptShelf | None = None,
        *,
        prices: PriceTable | None = None,
        limits: McpLimits | None = None,
        write_line: Callable[[str], None] | None = None,
    ) -> None:
        self.prices = PriceTable() if prices is None else prices
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)
        """The latest lines of the turn log, oldest first (TM-052)."""
        self._parts = parts
        self._shelf = shelf_of(parts.settings) if shelf is None else shelf
        self._limits = McpLimits() if limits is None else limits
        self._write_line = write_line
        self._counts = dict.fromkeys(Effect, 0)
        self._ready = asyncio.Event()
        self._ready.set()
        self._setting: TurnSetting | None = None
        self._turns: dict[str, tuple[Turn, asyncio.Task[None]]] = {}
        self._silence: Callable[[], None] | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._sweep_at = 0

    async def start(self) -> None:
        """Interrupt what a former life had claimed, then take what it had only accepted (MSG-010, MSG-036)."""
        self._interrupt_claimed()
        store = StoreHttp(open_http(), self._limits)
        self._setting = TurnSetting(store, self.prices, self._ready, self._log, self._counts)
        self._silence = self._parts.bell.listen(self._wake)
        self._wake()

    async def stop(self) -> None:
        """Leave every turn where it stands, as a crash does. Nothing is written any more."""
        if self._silence is not None:
            self._silence()
            self._silence = None
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        tasks = [task for _, task in self._turns.values()]
        self._turns.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        setting, self._setting = self._setting, None
        if setting is not None:
            await setting.store.http.close()

    def hold(self) -> None:
        """Keep the queue: accepted runs wait for `release`."""
        self._ready.clear()

    def release(self) -> None:
        """Let waiting runs be claimed."""
        self._ready.set()

    def cancel(self, run_id: str) -> bool:
        """End a run as cancelled; False when it is not active here (MSG-037)."""
        if run_id not in self._turns or not self._is_active(run_id):
            return False
        turn, task = self._turns.pop(run_id)
        turn.cancel()
        task.cancel()
        return True

    def active(self) -> int:
        """How many turns have not ended."""
        return len(self._turns)

    def counts(self) -> Mapping[str, int]:
        """Model requests, discoveries and tool calls that began in this life (MSG-011)."""
        return {str(effect): count for effect, count in self._counts.items()}

    def _wake(self) -> None:
        # One look for all: the bell rings at each delta of each run.
        rows = self._parts.state.rows(
            "SELECT run_id, status FROM runs WHERE status IN ('accepted', 'running') ORDER BY created_ms, rowid"
        )
        active = {row["run_id"]: row["status"] for row in rows}
        for run_id, status in active.items():
            if status == RunStatus.ACCEPTED and run_id not in self._turns:
                self._begin(run_id)
        for run_id in [run_id for run_id in self._turns if run_id not in active]:
            # Removed with its conversation: nothing of it may be done any more (PA-026).
            if find_run(self._parts.state, run_id) is None:
                self._turns.pop(run_id)[1].cancel()
        self._arm_sweep()

    def _begin(self, run_id: str) -> None:
        run = find_run(self._parts.state, run_id)
        if run is None or self._setting is None:
            return
        script = self._shelf.choose(run.authority.agent_id, run.message)
        turn = Turn(self._parts, run, script, self._setting)
        task = asyncio.get_running_loop().create_task(turn.run())
        self._turns[run_id] = (turn, task)
        task.add_done_callback(lambda ended: self._over(run_id, ended))

    def _over(self, run_id: str, task: asyncio.Task[None]) -> None:
        held = self._turns.get(run_id)
        if held is not None and held[1] is task:
            del self._turns[run_id]
        if not task.cancelled() and (defect := task.exception()) is not None:
            self._parts.ctx.fail(defect)

    def _is_active(self, run_id: str) -> bool:
        row = self._parts.state.row("SELECT status FROM runs WHERE run_id = ?", run_id)
        return row is not None and row["status"] in (RunStatus.ACCEPTED, RunStatus.RUNNING)

    def _interrupt_claimed(self) -> None:
        # MSG-011: it is never executed again
        for row in self._parts.state.rows(
            "SELECT run_id FROM runs WHERE status = 'running' ORDER BY created_ms, rowid"
        ):
            with self._parts.state.transaction():
                keep_answer(self._parts.state, row["run_id"])
                finish_run(self._parts, row["run_id"], INTERRUPTED, None, None)

    def _arm_sweep(self) -> None:
        due = next_sweep_ms(self._parts.state)
        wall = self._parts.ctx.wall_ms()
        # The run's own time of the sweep: a clock that a control moved comes to it sooner or later.
        at = 0 if due is None else wall + max(0, due - self._parts.now_ms())
        if self._sweep is not None and at == self._sweep_at:
            return
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        if due is not None:
            self._sweep_at = at
            self._sweep = asyncio.get_running_loop().call_later((at - wall) / 1000, self._do_sweep)

    def _do_sweep(self) -> None:
        self._sweep = None
        sweep(self._parts)
        self._arm_sweep()

    def _log(self, turn_id: str, timings: Mapping[str, object]) -> None:
        """TM-038: one line per turn, with the snapshot that was stored and nothing else (TM-041)."""
        line = json.dumps({"event": "turn_timings", "turnId": turn_id, "timings": timings}, separators=(",", ":"))
        self.lines.append(line)
        if self._write_line is not None:
            self._write_line(line)
