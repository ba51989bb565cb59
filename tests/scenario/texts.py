"""Scenario texts and the laws that the tests of the language know."""

from __future__ import annotations

from pathlib import Path

from lab.laws import ALL_LAWS, PARTNER_LAWS
from lab.scenario.loader import load_scenario
from lab.scenario.model import Scenario

ROOT = Path(__file__).resolve().parents[2]
LAWS = (
    "acks",
    "content-stays-in-its-fields",
    "job-at-most-once",
    "resume-rules",
    "retransmission",
    "stream-complete",
)
"""Enough for scenarios that only the tests of the language see."""

ALL_LAW_IDS = tuple(law.id for law in ALL_LAWS)
PARTNER_LAW_IDS = tuple(law.id for law in PARTNER_LAWS)

FULL = """\
scenario: full
about: Everything that the language can say
tags: [one, two]
seed: 7
deadline: 2m
requires: [reference, job.chat]
gateways:
  a: { tenant_mode: hybrid, signature: off, revision: "2.2", limits: { ackTimeoutMs: 500, heartbeatSeconds: 5 } }
  b: { instance_of: a, protocol_v2: off }
agent2s:
  fast: { kinds: [chat], scripts: { chat: fixtures/agent2/answer.yaml } }
  slow: { health: { delay: 50ms } }
local_agents:
  one: { gateway: b, agent2: slow, use: node la.js, signature: warn, revision: "2.1", settings: { audit: true } }
  two: { gateway: a, agent2: fast, clock: 90s }
links:
  a: {}
  b: { to: b, of: one, delay: 20ms }
steps:
  - wait: { for: one.ready, within: 10s }
  - assign:
      job: q1
      kind: chat
      inputs: [first, { file: fixtures/prompts/second.txt }]
      to: two
      options: { conversationId: abc, deep: true }
      llm: null
      incident: inc-42
      fails: AGENT_UNSUPPORTED
      within: 1s
  - stream: { job: q1, until: { events: 40 } }
  - stream: { job: q1, until: done, within: 200ms }
  - fault: { link: a, cut: true, for: 3s }
  - fault:
      link: a
      delay: 200ms
      id: slow
      after: { frame: content.response, from: one, nth: 2, content: job.stream, chunk: 1 }
  - fault: { link: a, reset: true }
  - fault: { link: a, heal: true }
  - fault: { frame: ack, from: a, of: job.event, nth: 3, do: hold, for: 2s, id: late }
  - fault: { frame: job.event, from: two, do: drop }
  - fault: { frame: job.assign, from: b, do: duplicate }
  - wait: { for: job.q1.accepted }
  - wait: { for: fault.late.fired }
  - result: { job: q1, within: 20s }
  - session: { job: q1, within: 1s }
  - cancel: { job: q1, reason: policy, within: 2s }
  - approve: { job: q1, decision: deny, within: 3s }
  - idle: 2s
  - fault: { agent2: fast, crash: true, for: 1s }
  - fault: { link: a, move: b }
  - fault: { frame: job.event, from: two, nth: every, do: drop }
  - fault: { frame: job.assign, from: a, times: 4, do: tamper }
  - content: { job: q1, kind: chat.session, pace: 1s, fails: rate_limited, within: 4s }
  - inject: { to: one, text: "{}" }
  - inject: { to: one, junk: binary }
  - fault: { local_agent: two, kill: true, for: 2s }
expect:
  - job.q1.outcome: no_change
  - job.q1.errorCode: null
  - job.q1.filesChangedCount: { min: 1, max: 3 }
  - job.q1.runs: 1
  - job.q1.acks: { count: 2, contains: duplicate }
  - stream.q1.events: { contiguous: true, count: 200 }
  - stream.q1.pages: 5
  - session.q1.turns: [{ role: user }, { role: assistant, contains: "9001" }]
  - session.q1.truncated: false
  - figures.retransmissions: { max: 1 }
  - socket.one.closes: { count: 2, contains: "4420" }
must_judge: [stream-complete, job-at-most-once]
patient: true
"""

SHORT = "scenario: short\nabout: Hardly anything\nsteps:\n  - idle: 1s\n"


def project(folder: Path) -> Path:
    """A project in `folder` with the files that FULL names; its path."""
    for name, text in (("agent2/answer.yaml", "script: answer\n"), ("prompts/second.txt", "second\n")):
        file = folder / "fixtures" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return folder


def load(folder: Path, name: str, text: str, **overrides: str) -> Scenario:
    """The scenario `text`, written as `name` into `folder`; overrides have `__` for a dot."""
    file = folder / f"{name}.yaml"
    file.write_text(text, "utf-8")
    dotted = {key.replace("__", "."): value for key, value in overrides.items()}
    return load_scenario(file, known_laws=LAWS, overrides=dotted)
