// What the environment says.

import { createPublicKey } from 'node:crypto';
import { join } from 'node:path';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const MODES = ['off', 'warn', 'enforce'];
const TRUE_WORDS = ['true', '1', 'yes', 'on'];

export function readSettings(env) {
  const needed = (name) => {
    if (!env[name]) throw new Error(`the variable ${name} is not set`);
    return env[name];
  };
  const signatureMode = env.LAB_SIGNATURE_MODE || 'enforce';
  if (!MODES.includes(signatureMode)) throw new Error(`LAB_SIGNATURE_MODE is none of ${MODES.join(', ')}`);
  return {
    gatewayUrl: needed('LAB_GATEWAY_WS_URL'),
    gatewayToken: needed('LAB_GATEWAY_TOKEN'),
    agent2Url: needed('LAB_AGENT2_URL').replace(/\/+$/, ''),
    agent2Token: needed('LAB_AGENT2_TOKEN'),
    tenantId: uuid(needed('LAB_TENANT_ID'), 'LAB_TENANT_ID'),
    agentId: uuid(needed('LAB_AGENT_ID'), 'LAB_AGENT_ID'),
    workspaces: workspaces(needed('LAB_WORKSPACES')),
    trustedKeys: trustedKeys(env.LAB_TRUSTED_KEYS ?? ''),
    signatureMode,
    chat: TRUE_WORDS.includes((env.LOCAL_AGENT_CHAT ?? '').trim().toLowerCase()), // CHAT-062, CHAT-063
    maxInFlight: clamped(env.LOCAL_AGENT_V2_MAX_IN_FLIGHT, 8, 1, 64), // LA-005, LA-006
    handshakeMs: clamped(env.LOCAL_AGENT_V2_HANDSHAKE_MS, 10_000, 1_000, 60_000), // HS-024
    stateFolder: join(needed('HOME'), '.lab-node-agent'),
  };
}

// LA-004: trimmed, lower-cased, and a UUID.
function uuid(text, name) {
  const id = text.trim().toLowerCase();
  if (!UUID.test(id)) throw new Error(`${name} is no UUID`);
  return id;
}

function workspaces(text) {
  let list;
  try {
    list = JSON.parse(text);
  } catch {
    throw new Error('LAB_WORKSPACES is no JSON');
  }
  if (!Array.isArray(list) || list.length === 0) throw new Error('LAB_WORKSPACES names no workspace');
  return list.map(({ workspaceId, path }) => ({ workspaceId, path }));
}

// SG-021: keyId=base64 of the raw 32 bytes, separated by commas.
function trustedKeys(text) {
  const keys = new Map();
  for (const entry of text.split(',').filter(Boolean)) {
    const at = entry.indexOf('=');
    const raw = Buffer.from(entry.slice(at + 1), 'base64');
    if (at < 1 || raw.length !== 32) throw new Error('LAB_TRUSTED_KEYS has an entry that is no keyId=base64');
    const jwk = { kty: 'OKP', crv: 'Ed25519', x: raw.toString('base64url') };
    keys.set(entry.slice(0, at).trim(), createPublicKey({ key: jwk, format: 'jwk' }));
  }
  return keys;
}

function clamped(text, otherwise, least, most) {
  const number = Number.parseInt(text ?? '', 10);
  return Number.isNaN(number) ? otherwise : Math.min(most, Math.max(least, number));
}
