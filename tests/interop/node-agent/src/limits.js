// What `ready` may set, within what the contract allows (HS-027).

const LEAST_MS = 50;

export function sessionLimits(given, maxima) {
  const clamp = (name, least = 1) => Math.min(maxima[name], Math.max(least, given[name] ?? maxima[name]));
  return {
    chunkRawBytes: clamp('chunkRawBytes'),
    maxChunks: clamp('maxChunks'),
    ackTimeoutMs: clamp('ackTimeoutMs', LEAST_MS),
    maxRetransmissions: clamp('maxRetransmissions'),
    heartbeatSeconds: clamp('heartbeatSeconds'),
  };
}
