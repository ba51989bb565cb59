// agent2's local API, as its client sees it.

import { EventParser, TooLong } from './sse.js';

const REQUEST_MS = 10_000; // A2-018
const HEALTH_MS = 3_000; // A2-002
const MAX_JSON_BYTES = 1024 * 1024; // A2-020
const KIND = /^[a-z][a-z0-9._-]{0,31}$/;
const PREFIX = '/local/v1';

export class Agent2 {
  #base;
  #token;

  constructor({ agent2Url, agent2Token }) {
    this.#base = agent2Url.endsWith(PREFIX) ? agent2Url : agent2Url + PREFIX; // A2-001
    this.#token = agent2Token;
  }

  // {up, kinds}; whatever goes wrong means down (A2-002 to A2-005).
  async health() {
    try {
      const answer = await fetch(`${this.#base}/health`, { signal: AbortSignal.timeout(HEALTH_MS), redirect: 'error' });
      const body = await readJson(answer);
      if (!answer.ok || body?.status !== 'up') return { up: false, kinds: [] };
      const kinds = Array.isArray(body.kinds) ? body.kinds : [];
      return { up: true, kinds: kinds.filter((kind) => typeof kind === 'string' && KIND.test(kind)).slice(0, 16) };
    } catch {
      return { up: false, kinds: [] };
    }
  }

  // Each gives the HTTP status, or 0 without an answer.
  startJob(body) { return this.#post('/jobs', body); }
  cancelJob(jobId, reason) { return this.#post(`/jobs/${encodeURIComponent(jobId)}/cancel`, { reason }); } // A2-010
  decide(approvalId, body) { return this.#post(`/approvals/${encodeURIComponent(approvalId)}`, body); } // A2-013

  async #post(path, body) {
    try {
      const answer = await fetch(this.#base + path, {
        method: 'POST',
        headers: { ...this.#bearer(), 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(REQUEST_MS),
        redirect: 'error',
      });
      await answer.body?.cancel(); // A2-063: no text of agent2 goes further
      return answer.status;
    } catch {
      return 0;
    }
  }

  // Reads `events` or `stream` of a job. `onEvent` returns true to stop. How it ended: ended, stopped, cancelled,
  // not_found, unauthorized, http_error, bad_response, stream_broken (A2-021 to A2-034, A2-061).
  async read(jobId, which, signal, onEvent) {
    const over = new AbortController();
    const forward = () => over.abort();
    if (signal.aborted) return 'cancelled';
    signal.addEventListener('abort', forward);
    try {
      const answer = await fetch(`${this.#base}/jobs/${encodeURIComponent(jobId)}/${which}`, {
        headers: { ...this.#bearer(), accept: 'text/event-stream' }, signal: over.signal, redirect: 'error',
      });
      if (answer.status === 404) return 'not_found';
      if (answer.status === 401) return 'unauthorized';
      if (answer.status !== 200) return 'http_error';
      if (!answer.body) return 'bad_response';
      const parser = new EventParser();
      for await (const bytes of answer.body) {
        for (const event of parser.push(bytes)) if (onEvent(event)) return 'stopped';
      }
      for (const event of parser.end()) if (onEvent(event)) return 'stopped';
      return 'ended';
    } catch (error) {
      if (signal.aborted) return 'cancelled';
      return error instanceof TooLong ? 'bad_response' : 'stream_broken';
    } finally {
      signal.removeEventListener('abort', forward);
      over.abort();
    }
  }

  #bearer() { return { authorization: `Bearer ${this.#token}` }; } // A2-017
}

// A2-019: bounded, and what is no JSON is no value.
async function readJson(answer) {
  const parts = [];
  let size = 0;
  for await (const part of answer.body ?? []) {
    size += part.length;
    if (size > MAX_JSON_BYTES) return undefined;
    parts.push(part);
  }
  try {
    return JSON.parse(Buffer.concat(parts).toString('utf8'));
  } catch {
    return undefined;
  }
}
