// Following agent2's two streams of a job. Both replay from their start at each connection (A2-038), and a broken one
// is opened again (A2-042, A2-043).

import { setTimeout as sleep } from 'node:timers/promises';
import { log } from './log.js';

const RECONNECTS = 5;
const STEP_MS = 250;
const BROKEN = new Set(['stream_broken', 'bad_response', 'http_error', 'not_found', 'unauthorized']);

// Reads until it ended, was stopped or was cancelled, or until it was opened too often without progress. `onEvent`
// gets each event with its position in the replay; it returns {isNew, stop}.
async function follow(agent2, jobId, which, signal, onEvent) {
  let attempts = 0;
  for (;;) {
    let position = 0;
    const end = await agent2.read(jobId, which, signal, (event) => {
      const { isNew, stop } = onEvent(event, position);
      position += 1;
      if (isNew) attempts = 0;
      return stop;
    });
    if (!BROKEN.has(end)) return end;
    attempts += 1;
    log('agent2_stream_broken', { which, end, attempts });
    if (attempts > RECONNECTS) return end;
    await sleep(STEP_MS * attempts, undefined, { signal }).catch(() => {});
  }
}

// The metadata frames; `onFrame` returns true for the last one (A2-036, A2-039, A2-041).
export function followEvents(agent2, { jobId, tenantId }, signal, onFrame) {
  let lastSeq = 0;
  return follow(agent2, jobId, 'events', signal, ({ name, data }) => {
    const frame = name === 'frame' ? readFrame(data) : null;
    if (frame === null || frame.seq <= lastSeq) return { isNew: false, stop: false };
    lastSeq = frame.seq;
    if (frame.tenantId !== tenantId || frame.jobId !== jobId) { // SEC-016
      log('foreign_frame_dropped', { seq: frame.seq });
      return { isNew: true, stop: false };
    }
    return { isNew: true, stop: onFrame(frame) };
  });
}

function readFrame(data) {
  try {
    const frame = JSON.parse(data);
    const isFrame = typeof frame?.type === 'string' && Number.isSafeInteger(frame.seq) && frame.seq >= 1
      && typeof frame.payload === 'object' && frame.payload !== null;
    if (isFrame) return frame;
  } catch {
    // falls through: what is no JSON is no frame
  }
  log('agent2_frame_dropped');
  return null;
}

// The content lines (A2-037).
export function followLines(agent2, jobId, signal, onLine) {
  let seen = 0;
  return follow(agent2, jobId, 'stream', signal, ({ data }, position) => {
    const isNew = position >= seen;
    if (isNew) {
      seen += 1;
      onLine(data);
    }
    return { isNew, stop: false };
  });
}
