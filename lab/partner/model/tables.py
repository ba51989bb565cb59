"""All tables of the model's state. Times are epoch milliseconds; JSON stands as text.

Content (texts, events, files, sealed grants) stands in items, events, attachments, runs and bindings alone, so that a
removal knows what to erase (PA-026).
"""

from __future__ import annotations

from typing import Final

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
-- PRIV-019: hashes, never keys. One role has one living key at a time.
CREATE TABLE IF NOT EXISTS keys (
    key_hash TEXT PRIMARY KEY,
    role TEXT NOT NULL,
    scopes TEXT NOT NULL,               -- joined by spaces
    namespace TEXT NOT NULL,
    revoked INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS teams (
    team_id TEXT PRIMARY KEY,
    external_team_id TEXT NOT NULL UNIQUE,
    owner_actor_id TEXT NOT NULL,       -- MB-005: the team's own account, never who acts
    removed INTEGER NOT NULL DEFAULT 0
);
-- MB-004, MB-018, PA-053: permanent, bound to the namespace
CREATE TABLE IF NOT EXISTS identities (
    actor_id TEXT PRIMARY KEY,
    namespace TEXT NOT NULL,
    external_user_id TEXT NOT NULL,
    subject_version INTEGER NOT NULL DEFAULT 1,
    deleted INTEGER NOT NULL DEFAULT 0,
    UNIQUE (namespace, external_user_id)
);
CREATE TABLE IF NOT EXISTS memberships (
    actor_id TEXT NOT NULL,
    team_id TEXT NOT NULL,
    source_revision INTEGER NOT NULL,
    role TEXT NOT NULL,
    active INTEGER NOT NULL,
    valid_until_ms INTEGER,
    version INTEGER NOT NULL,
    PRIMARY KEY (actor_id, team_id)
);
-- mcp: NULL for a profile without MCP, else a JSON list of [server_id, destination]
CREATE TABLE IF NOT EXISTS agents (
    agent_id TEXT PRIMARY KEY,
    team_id TEXT NOT NULL,
    mcp TEXT,
    profile INTEGER NOT NULL,
    admin INTEGER NOT NULL,
    removed INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS conversations (
    conversation_id TEXT PRIMARY KEY,
    actor_id TEXT NOT NULL,
    team_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    server_id TEXT,                     -- both NULL: conversation only
    destination TEXT,
    guest INTEGER NOT NULL DEFAULT 0,
    closed INTEGER NOT NULL DEFAULT 0,
    removed INTEGER NOT NULL DEFAULT 0,
    created_ms INTEGER NOT NULL
);
-- CX-016: the grant is sealed; the key lies outside the state
CREATE TABLE IF NOT EXISTS bindings (
    conversation_id TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    expires_ms INTEGER,
    sealed_grant BLOB,
    revoked INTEGER NOT NULL DEFAULT 0
);
-- PRIV-023: hashes of key and input. answer is NULL once what it told of was removed.
CREATE TABLE IF NOT EXISTS receipts (
    key_hash TEXT PRIMARY KEY,
    operation TEXT NOT NULL,
    input_hash TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    run_id TEXT,
    answer TEXT,
    created_ms INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS runs (
    run_id TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL,
    turn_id TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    reason TEXT,
    key_role TEXT NOT NULL,             -- MSG-036: the role, not the value of the key
    namespace TEXT NOT NULL,
    actor_id TEXT NOT NULL,
    team_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    subject_version INTEGER NOT NULL,
    message TEXT NOT NULL DEFAULT '',
    attachment_ids TEXT NOT NULL DEFAULT '[]',
    timezone TEXT NOT NULL DEFAULT 'UTC',
    tool_errors TEXT NOT NULL DEFAULT '[]',
    timings TEXT,                       -- NULL: never measured
    usage TEXT,
    claimed INTEGER NOT NULL DEFAULT 0,
    instance TEXT,                      -- instanceId that claimed it
    created_ms INTEGER NOT NULL,
    claimed_ms INTEGER,
    ended_ms INTEGER
);
CREATE INDEX IF NOT EXISTS runs_by_conversation ON runs (conversation_id, created_ms);
CREATE INDEX IF NOT EXISTS runs_active ON runs (created_ms) WHERE status IN ('accepted', 'running');
-- SSE-045: data is the exact text of the data line, so a replay has the same bytes
CREATE TABLE IF NOT EXISTS events (
    run_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    type TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (run_id, seq)
);
-- position is the order of insertion (HIS-030)
CREATE TABLE IF NOT EXISTS items (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    item_id TEXT NOT NULL UNIQUE,
    conversation_id TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    run_id TEXT,
    role TEXT NOT NULL,
    text TEXT NOT NULL,
    parts TEXT,                         -- NULL: no journal, or still a tool without its end
    attachment_ids TEXT NOT NULL DEFAULT '[]',
    created_ms INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS items_by_conversation ON items (conversation_id, created_ms, position);
CREATE TABLE IF NOT EXISTS attachments (
    attachment_id TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL,
    actor_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    mime_type TEXT NOT NULL,
    name TEXT NOT NULL,
    size INTEGER NOT NULL,
    content BLOB NOT NULL,
    sent INTEGER NOT NULL DEFAULT 0,    -- a message names it, so it stays (AT-010, AT-024)
    created_ms INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS attachments_unsent ON attachments (created_ms) WHERE sent = 0;
CREATE TABLE IF NOT EXISTS billing (
    billing_id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    model TEXT,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    cost_usd_pico INTEGER,              -- NULL: no price
    streamed INTEGER NOT NULL DEFAULT 0,
    created_ms INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS billing_by_run ON billing (run_id);
-- PA-026, PA-027: what is gone, and whose it was
CREATE TABLE IF NOT EXISTS tombstones (
    kind TEXT NOT NULL,                 -- thread, agent or team
    id TEXT NOT NULL,
    actor_id TEXT,
    team_id TEXT,
    removed_ms INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
);
"""
