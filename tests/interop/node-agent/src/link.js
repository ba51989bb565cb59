// The agent's link to its gateway: one connection after the other, and the session that outlives them.

import { createHash } from 'node:crypto';
import { statfsSync } from 'node:fs';
import { Connection } from './connection.js';
import { log } from './log.js';

const FIRST_DELAY_MS = 250;
const LONGEST_DELAY_MS = 2_000;
const KEEP_SESSION_MS = 120_000; // RS-008
const FATAL_ENDS = 5;

export class Link {
  #parts;
  #digests;
  #connection = null;
  #delay = FIRST_DELAY_MS;
  #isStopped = false;
  #expiry = null;
  #fatalEnds = 0;
  #progressSeen = 0;

  // `parts`: what a Connection needs, and `capabilities()`, `jobs`.
  constructor(parts) {
    this.#parts = parts;
    // HS-004, HS-005: the path itself never leaves the machine.
    this.#digests = parts.settings.workspaces.map(({ workspaceId, path }) => ({
      workspaceId, pathSha256: createHash('sha256').update(path, 'utf8').digest('hex'),
    }));
  }

  start() { this.#connect(); }

  stop() {
    this.#isStopped = true;
    this.#connection?.close(1000);
  }

  async #connect() {
    const capabilities = await this.#parts.capabilities(); // CHAT-005: announced anew at each connection
    if (this.#isStopped) return;
    const { jobs, settings } = this.#parts;
    this.#connection = new Connection({
      ...this.#parts,
      capabilities,
      digests: this.#digests,
      status: () => ({
        graphify: { state: 'off' },
        disk: freeDisk(settings),
        queue: { depth: jobs.queued },
        clock: { utc: new Date().toISOString() },
      }),
      heartbeat: () => ({
        state: jobs.running > 0 ? 'busy' : 'idle', jobsRunning: jobs.running, queueDepth: jobs.queued,
      }),
      onReady: () => this.#onReady(),
      onEnd: (end) => this.#onEnd(end),
    });
  }

  #onReady() {
    this.#delay = FIRST_DELAY_MS;
    clearTimeout(this.#expiry);
    this.#expiry = null;
  }

  #onEnd(isFatalEnd) {
    const { reliability } = this.#parts;
    if (reliability.progress !== this.#progressSeen) this.#fatalEnds = 0;
    this.#progressSeen = reliability.progress;
    if (isFatalEnd) this.#fatalEnds += 1;
    if (this.#fatalEnds >= FATAL_ENDS) {
      log('session_given_up', { fatalEnds: this.#fatalEnds });
      reliability.forget();
      this.#fatalEnds = 0;
    }
    if (this.#isStopped) return;
    if (this.#expiry === null && reliability.sessionId !== null) {
      this.#expiry = setTimeout(() => { log('session_expired'); reliability.forget(); }, KEEP_SESSION_MS);
    }
    setTimeout(() => this.#connect(), this.#delay * (0.5 + Math.random() / 2));
    this.#delay = Math.min(this.#delay * 2, LONGEST_DELAY_MS);
  }
}

function freeDisk({ stateFolder }) {
  try {
    const { bavail, bsize } = statfsSync(stateFolder);
    return { freeBytes: bavail * bsize };
  } catch {
    return undefined;
  }
}
