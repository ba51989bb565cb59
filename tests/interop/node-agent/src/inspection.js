// The checks on what arrives, in their order: size, JSON, type, direction, schema, tenant, agent, signature
// (WS-031 to WS-033). What depends on the connection comes after them, in connection.js.

import { isObject, parseStrictly } from './json.js';

export class Inspection {
  #contract;
  #signatures;
  #identity;

  constructor(contract, signatures, { tenantId, agentId }) {
    this.#contract = contract;
    this.#signatures = signatures;
    this.#identity = { tenantId, agentId };
  }

  // What a message is: {word} for ping and pong, {frame} for a frame without fault, {code, frame?} for a fault.
  inspect(data, isBinary, isCopy) {
    if (data.length > this.#contract.limits.maxFrameBytes) return { code: 'frame_too_large' }; // WS-020
    if (isBinary) return { code: 'bad_frame' }; // WS-036
    const text = data.toString('utf8');
    if (text === 'ping' || text === 'pong') return { word: text }; // WS-051, WS-052
    let frame;
    try {
      frame = parseStrictly(text);
    } catch {
      return { code: 'bad_frame' }; // WS-035
    }
    if (!isObject(frame)) return { code: 'bad_frame' };
    if (['ping', 'pong'].includes(frame.type) && frame.schemaVersion === undefined) return { word: frame.type };
    const code = this.#fault(frame, isCopy);
    return code === null ? { frame } : { code, frame };
  }

  #fault(frame, isCopy) {
    const contract = this.#contract;
    if (!contract.isKnown(frame.type)) return 'unknown_type'; // WS-037
    if (!contract.mayComeFromControlPlane(frame.type)) return 'wrong_direction'; // WS-038
    if (!contract.holds(frame)) return 'schema_violation';
    if (frame.tenantId !== this.#identity.tenantId) return 'tenant_mismatch';
    if (frame.agentId !== undefined && frame.agentId !== this.#identity.agentId) return 'agent_mismatch';
    if (!contract.isSigned(frame.type)) return null;
    return this.#signatures.refusal(frame, isCopy(frame.seq, frame.msgId));
  }
}
