// The jobs that the control plane assigns: one at a time, each once.

import { setTimeout as sleep } from 'node:timers/promises';
import { log } from './log.js';

const QUEUED = 16;
const KNOWN = 1_000;
const RETRY_MS = 1_000;

class Job {
  constructor({ workspaceId, payload }) {
    Object.assign(this, { jobId: payload.jobId, kind: payload.kind, workspaceId, payload });
    this.cancel = new AbortController();
    this.reason = 'user';
    this.timedOut = false;
    this.result = null;
  }

  stop(reason) {
    if (this.cancel.signal.aborted) return;
    this.reason = reason;
    this.cancel.abort();
  }
}

export class Jobs {
  #runner;
  #reliability;
  #kinds;
  #waiting = [];
  #current = null;
  #known = new Map();

  // `kinds()`: what is served at this moment.
  constructor({ runner, reliability, kinds }) {
    this.#runner = runner;
    this.#reliability = reliability;
    this.#kinds = kinds;
  }

  get running() { return this.#current ? 1 : 0; }
  get queued() { return this.#waiting.length; }

  runs(jobId) { return this.#current?.jobId === jobId; }

  // CHAT-044: whether a chat is on its way or running.
  isActiveChat(jobId) {
    return [this.#current, ...this.#waiting].some((job) => job?.jobId === jobId && job.kind === 'chat');
  }

  assign = {
    refusal: ({ workspaceId, payload }) => {
      if ((payload.workspaceId ?? workspaceId) !== workspaceId) return 'schema_violation';
      if (this.#known.has(payload.jobId)) return null;
      if (!this.#kinds().includes(payload.kind)) return 'protocol_unsupported'; // LA-009, LA-010
      return this.#waiting.length >= QUEUED ? 'rate_limited' : null; // LA-014
    },
    act: (frame) => {
      const known = this.#known.get(frame.payload.jobId);
      if (known) {
        // The same job in a new frame is not run again; its result is told again.
        if (known.result) this.#report(known);
        return;
      }
      const job = new Job(frame);
      this.#remember(job);
      this.#waiting.push(job);
      log('job_assigned', { job: job.jobId, kind: job.kind });
      this.#next();
    },
  };

  cancel = {
    refusal: () => null,
    act: ({ payload }) => {
      const job = this.#known.get(payload.jobId);
      if (!job || job.result) return;
      job.stop(payload.reason ?? 'user'); // TY-013
      const at = this.#waiting.indexOf(job);
      if (at >= 0) {
        this.#waiting.splice(at, 1);
        this.#endWaiting(job);
      }
    },
  };

  // A chat that never ran has a closed, empty stream.
  #endWaiting(job) {
    if (job.kind === 'chat') {
      try {
        this.#runner.closeChat(this.#runner.openChat(job), 'cancelled');
      } catch (error) {
        log('chat_store_unavailable', { code: error.code ?? error.name });
      }
    }
    this.#finish(job, { jobId: job.jobId, outcome: 'cancelled' });
  }

  async #next() {
    if (this.#current || this.#waiting.length === 0) return;
    const job = this.#waiting.shift();
    this.#current = job;
    const result = await this.#runner.run(job);
    this.#current = null;
    this.#finish(job, result);
    this.#next();
  }

  #finish(job, result) {
    job.result = result;
    job.payload = null; // SEC-002: what was inline is gone with the job
    log('job_over', { job: job.jobId, outcome: result.outcome, errorCode: result.errorCode });
    this.#report(job);
  }

  // A result that finds no room in the queue is tried again.
  async #report(job) {
    const content = { workspaceId: job.workspaceId, payload: job.result };
    let outgoing;
    while (!(outgoing = this.#reliability.send('job.result', content, { again: true }))) await sleep(RETRY_MS);
    const how = await outgoing.settled;
    if (how !== 'acked') log('result_not_acked', { job: job.jobId, code: how });
  }

  #remember(job) {
    this.#known.set(job.jobId, job);
    for (const [jobId, { result }] of this.#known) {
      if (this.#known.size <= KNOWN) return;
      if (result) this.#known.delete(jobId);
    }
  }
}
