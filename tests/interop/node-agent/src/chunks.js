// Sending a body as chunks, or one chunk that says why there is none.

// CH-002, CH-014, CH-015: the next chunk is made when the one before has got its place in the window.
// Resolves to 'acked' or the code of the failure.
export async function sendBody(reliability, request, body, limits) {
  const total = Math.max(1, Math.ceil(body.length / limits.chunkRawBytes));
  if (total > limits.maxChunks) return 'payload_too_large'; // CH-013
  const { epoch } = reliability;
  let outgoing;
  for (let index = 0; index < total; index += 1) {
    const part = body.subarray(index * limits.chunkRawBytes, (index + 1) * limits.chunkRawBytes);
    outgoing = send(reliability, request, { index, total, last: index === total - 1 }, {
      status: 'ok', contentType: 'application/json', encoding: 'base64', data: part.toString('base64'),
      byteLength: part.length, totalBytes: body.length,
    });
    if (outgoing === null) return 'rate_limited';
    if (!(await outgoing.admitted) || reliability.epoch !== epoch) return 'agent_offline'; // RS-014
    const isRefused = await Promise.race([outgoing.settled, undefined]);
    if (isRefused !== undefined && isRefused !== 'acked') return isRefused;
  }
  return outgoing.settled;
}

// CH-010, CH-011
export function sendFailure(reliability, request, status, errorCode = 'internal') {
  send(reliability, request, { index: 0, total: 1, last: true }, {
    status, encoding: 'base64', data: '', byteLength: 0, errorCode,
  });
}

function send(reliability, { requestId, workspaceId }, chunk, payload) {
  return reliability.send('content.response', { requestId, workspaceId, chunk, payload });
}
