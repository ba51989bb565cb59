// Whether a frame of the control plane is signed as it should be.

import { createHash, verify } from 'node:crypto';
import { parseStrictly, sameValue } from './json.js';
import { log } from './log.js';

const FRESH_MS = 60_000; // SG-014
const NONCES = 4096; // SG-015

// SG-003: the text that is signed.
function canonicalText(frame) {
  const { tenantId, workspaceId, timestamp, nonce } = frame.sig;
  const digest = createHash('sha256').update(frame.paramsRaw, 'utf8').digest('hex');
  return ['VH-AGENT-SIG-V1', 'WS', frame.type, tenantId, workspaceId, String(timestamp), nonce, digest].join('\n');
}

export class Signatures {
  #nonces = new Set();

  constructor({ trustedKeys, signatureMode }) {
    this.keys = trustedKeys;
    this.mode = signatureMode;
  }

  // The code to refuse the frame with, or null. `isCopy`: this very frame was received before, and a copy is a
  // duplicate before its nonce is judged (SG-014, WS-033).
  refusal(frame, isCopy) {
    if (this.mode === 'off') return null; // SG-010, SG-011
    const code = this.#fault(frame, isCopy);
    if (code === null || this.mode === 'enforce') return code;
    log('signature_fault_let_pass', { code, type: frame.type });
    return null;
  }

  #fault(frame, isCopy) {
    const { sig, paramsRaw } = frame;
    if (!repeats(paramsRaw, frame.payload)) return 'params_mismatch'; // SG-005, WS-035
    if (sig.tenantId !== frame.tenantId) return 'tenant_mismatch'; // SG-008
    if (sig.workspaceId !== frame.workspaceId) return 'unauthorized';
    const key = this.keys.get(sig.keyId); // SG-009
    if (key === undefined || !verifies(canonicalText(frame), key, sig.signature)) return 'unauthorized';
    if (Math.abs(Date.now() - Number(sig.timestamp)) > FRESH_MS) return 'unauthorized';
    if (isCopy) return null;
    if (this.#nonces.has(sig.nonce)) return 'unauthorized';
    this.#keep(sig.nonce);
    return null;
  }

  #keep(nonce) {
    this.#nonces.add(nonce);
    if (this.#nonces.size > NONCES) this.#nonces.delete(this.#nonces.values().next().value);
  }
}

function repeats(paramsRaw, payload) {
  try {
    return sameValue(parseStrictly(paramsRaw), payload);
  } catch {
    return false;
  }
}

export function verifies(text, key, signature) {
  return verify(null, Buffer.from(text, 'utf8'), key, Buffer.from(signature, 'base64url'));
}
