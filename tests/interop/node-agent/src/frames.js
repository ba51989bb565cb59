// The frames this agent writes.

import { randomUUID } from 'node:crypto';

export class FrameRefused extends Error {}

export class Frames {
  #contract;
  #identity;

  constructor(contract, { tenantId, agentId, workspaces }) {
    this.#contract = contract;
    // WS-013: what belongs to no workspace carries the first one.
    this.#identity = { tenantId, agentId, workspaceId: workspaces[0].workspaceId };
  }

  // {msgId, text} of a new frame. It is checked as the peer will check it (LA-007, WS-031): FrameRefused.
  write(type, { seq = 0, ack, requestId, workspaceId, chunk, payload }) {
    const { tenantId, agentId } = this.#identity;
    const msgId = randomUUID();
    const frame = {
      schemaVersion: 2, type, msgId, seq, ack, requestId, tenantId, agentId,
      workspaceId: workspaceId ?? this.#identity.workspaceId, ts: new Date().toISOString(), chunk, payload,
    };
    const text = JSON.stringify(frame);
    if (!this.#contract.holds(JSON.parse(text))) throw new FrameRefused(`a ${type} that breaks its schema`);
    if (Buffer.byteLength(text) > this.#contract.limits.maxFrameBytes) throw new FrameRefused(`a ${type} too large`);
    return { msgId, text };
  }
}
