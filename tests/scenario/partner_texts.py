"""Scenario texts of the partner leg."""

from __future__ import annotations

from pathlib import Path

SHORT_PARTNER = """\
scenario: short
about: The least that the partner leg can be
partner_api: {}
steps:
  - membership: { user: anna }
"""

FULL_PARTNER = """\
scenario: full
about: Everything that the partner leg can say
requires: [controls]
partner_api:
  use: http://127.0.0.1:3005
  teams: [shop, office]
  agents:
    store: { script: fixtures/partner/answer.yaml }
    talk: { team: office, mcp: none, profile: false }
  mcp_era: "2026"
  keep_alive: 1s
  keeps_state: true
  checks_claims: true
  status_after_error: true
store:
  answers: sse
  refusal: result
  misbehave:
    - { tool: catalog_get, nth: 2, do: slow, for: 300ms }
    - { method: tools/list, do: http-status, status: 503 }
issuer: { ttl: 1m }
links: { partner_api: {}, front: { to: issuer, delay: 20ms }, store: {} }
steps:
  - membership: { user: anna, team: office, role: owner, active: false, revision: 4, fails: CHAT_CONFLICT, within: 1s }
  - membership: { user: anna, lease: -1s }
  - conversation: { conversation: c1, user: anna, agent: store, within: 1s }
  - conversation: { conversation: c2, user: anna, team: office, agent: talk, again: c1, fails: CHAT_CONFLICT }
  - grant: { conversation: c1, wrong: { actor: other }, fails: not_found, within: 1s }
  - bind: { conversation: c1, expected: 3, destination: "x", server: y, user: eve, fails: CHAT_INVALID, within: 1s }
  - context: { conversation: c1, active: true, version: 1, user: eve, fails: CHAT_UNAVAILABLE, within: 1s }
  - recover: { conversation: c1, fails: MCP_CONTEXT_CONFLICT, within: 1s }
  - attach: { file: f1, conversation: c1, type: a/png, name: a, size: 9, user: eve, fails: CHAT_INVALID, within: 1s }
  - attach: { file: f2, conversation: c1, text: a list }
  - download: { file: f1, conversation: c2, fails: CHAT_UNAVAILABLE, within: 1s }
  - message:
      run: r1
      conversation: c1
      text: What does product 9001 cost?
      files: [f1, f2]
      timezone: Europe/Berlin
      user: eve
      fails: CHAT_CONFLICT
      within: 1s
  - message: { run: r2, conversation: c1, text: More, again: r1 }
  - follow: { run: r1, until: { events: 3 }, replay: true, after: "x:1", user: eve, fails: CHAT_INVALID, within: 1s }
  - poll: { run: r1, until: running, user: eve, fails: CHAT_UNAVAILABLE, within: 1s }
  - history: { conversation: c1, limit: 2, cursor: x, user: eve, fails: CHAT_INVALID, within: 1s }
  - call:
      method: PUT
      path: /conversations/{c1}/context
      status: 401
      key: only:chat:read
      actor: anna
      idempotency_key: k1
      headers: { X-Agent-Turn-Id: forged }
      body: "{}"
      fails: CREDENTIAL_REJECTED
      within: 1s
  - control: { clock: 6m, within: 1s }
  - control: { remove: c1 }
  - store: { misbehave: [ { do: reset } ] }
  - store: { forget_sessions: true }
  - fault: { link: front, cut: true, for: 1s }
  - fault: { partner: store, crash: true, for: 1s }
  - wait: { for: fault.cut-1.fired }
expect:
  - run.r1.status: completed
  - run.r1.text: { contains: "9001" }
  - run.r1.toolMs: { max: 500 }
  - stream.r1.events: { count: 6, contiguous: true }
  - history.c1.items: [ { role: assistant }, { role: user } ]
  - context.c1.active: true
"""


def partner_project(folder: Path) -> Path:
    """A project in `folder` with the files that the texts name."""
    fixtures = folder / "fixtures" / "partner"
    fixtures.mkdir(parents=True, exist_ok=True)
    (fixtures / "answer.yaml").write_text("script: answer\n", encoding="utf-8")
    return folder
