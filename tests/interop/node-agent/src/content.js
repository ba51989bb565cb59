// Answering content.request: job.stream and chat.session.

import { randomBytes } from 'node:crypto';
import { sendBody, sendFailure } from './chunks.js';
import { log } from './log.js';

const HOLD_MS = 8_000; // CHAT-036
const PAGE = 512; // CHAT-033
const WAITING = 16; // CHAT-070
const REQUESTS = 256; // CH-005
const CURSORS = 65_536;
const EMPTY_PAGE_BYTES = JSON.stringify({ events: [], nextRef: 'c'.repeat(43), done: false }).length;
const TURNS = 1_000; // CHAT-053
const TURN_LENGTH = 65_536;

class Failure extends Error {
  constructor(status, code = 'internal') {
    super(status);
    this.status = status;
    this.code = code;
  }
}

export class Content {
  #jobs;
  #chats;
  #reliability;
  #asked = new Set();
  #waiting = 0;
  #cursors = new Map();
  #kinds;

  constructor({ jobs, chats, reliability }) {
    this.#jobs = jobs;
    this.#chats = chats;
    this.#reliability = reliability;
    this.#kinds = {
      'job.stream': (request, most) => this.#page(request, most),
      'chat.session': (request, most) => this.#session(request, most),
    };
  }

  request = {
    refusal: ({ requestId, payload }) => {
      if (!this.#chats || !Object.hasOwn(this.#kinds, payload.kind)) return 'protocol_unsupported'; // CH-035
      return this.#asked.has(requestId) ? 'chunk_out_of_order' : null;
    },
    act: (frame, limits) => {
      this.#asked.add(frame.requestId);
      if (this.#asked.size > REQUESTS) this.#asked.delete(this.#asked.values().next().value);
      this.#answer(frame, limits);
    },
  };

  async #answer(frame, limits) {
    const { requestId, workspaceId, payload } = frame;
    const request = { requestId, workspaceId, ref: payload.ref };
    const most = Math.min(limits.chunkRawBytes * limits.maxChunks, payload.maxBytes ?? Infinity);
    const { epoch } = this.#reliability;
    try {
      const body = await this.#kinds[payload.kind](request, most);
      if (this.#reliability.epoch !== epoch) return; // RS-005: the request went with its session
      const how = await sendBody(this.#reliability, request, Buffer.from(JSON.stringify(body)), limits);
      if (how !== 'acked') log('content_not_delivered', { kind: payload.kind, code: how });
    } catch (error) {
      if (this.#reliability.epoch !== epoch) return;
      const isFailure = error instanceof Failure;
      if (!isFailure) log('content_broke', { kind: payload.kind, why: error.code ?? error.name });
      sendFailure(this.#reliability, request, isFailure ? error.status : 'error', isFailure ? error.code : 'internal');
    }
  }

  // --- job.stream ----------------------------------------------------------------------------------------------

  async #page({ ref, workspaceId }, most) {
    const { jobId, start } = this.#position(ref);
    const stream = await this.#held(jobId, start, workspaceId);
    const due = stream?.events.slice(start, start + PAGE) ?? [];
    const events = [];
    let left = most - EMPTY_PAGE_BYTES;
    for (const e of due) {
      const event = { i: start + events.length, e }; // CHAT-040
      left -= Buffer.byteLength(JSON.stringify(event)) + 1;
      if (left < 0) break; // CHAT-049
      events.push(event);
    }
    // Nothing fits, and asking again would not help.
    if (events.length === 0 && (due.length > 0 || left < 0)) throw new Failure('error', 'payload_too_large');
    const end = start + events.length;
    const done = Boolean(stream?.isClosed) && end === stream.events.length; // CHAT-041
    return { events, nextRef: this.#cursor(jobId, end), done };
  }

  // The stream as soon as there is something to tell from `start` on, or after the hold as it is then.
  async #held(jobId, start, workspaceId) {
    if (this.#waiting >= WAITING) throw new Failure('error', 'rate_limited');
    const until = Date.now() + HOLD_MS;
    this.#waiting += 1;
    try {
      for (;;) {
        const stream = this.#chats.stream(jobId);
        if (!stream && !this.#jobs.isActiveChat(jobId)) throw new Failure('not_found'); // CHAT-044, CHAT-045
        if (stream && stream.workspaceId !== workspaceId) throw new Failure('forbidden'); // CH-036
        const left = until - Date.now();
        if (left <= 0 || (stream && (stream.isClosed || stream.events.length > start))) return stream;
        await this.#chats.changed(left);
      }
    } finally {
      this.#waiting -= 1;
    }
  }

  #position(ref) {
    if (ref.length === 36) return { jobId: ref, start: 0 }; // CHAT-035
    const position = this.#cursors.get(ref);
    if (!position) throw new Failure('not_found'); // CHAT-043
    return position;
  }

  // CHAT-034, CHAT-046: random, and the same again for the same place.
  #cursor(jobId, start) {
    const place = `${jobId}/${start}`;
    if (!this.#cursors.has(place)) {
      const cursor = randomBytes(32).toString('base64url');
      this.#cursors.set(place, cursor).set(cursor, { jobId, start });
      while (this.#cursors.size > 2 * CURSORS) this.#cursors.delete(this.#cursors.keys().next().value);
    }
    return this.#cursors.get(place);
  }

  // --- chat.session --------------------------------------------------------------------------------------------

  async #session({ ref, workspaceId }, most) {
    const conversation = ref.length === 36 ? this.#chats.conversation(ref) : null;
    if (!conversation) throw new Failure('not_found'); // CHAT-057
    if (conversation.workspaceId !== workspaceId) throw new Failure('forbidden');
    let turns = conversation.turns.slice(-TURNS);
    let truncated = turns.length < conversation.turns.length;
    turns = turns.map((turn) => {
      const text = [...turn.text];
      if (text.length <= TURN_LENGTH) return turn;
      truncated = true;
      return { ...turn, text: text.slice(0, TURN_LENGTH).join('') };
    });
    const size = () => Buffer.byteLength(JSON.stringify({ turns, truncated }));
    while (turns.length > 0 && size() > most) { // CHAT-052: the oldest go first
      turns.shift();
      truncated = true;
    }
    if (size() > most) throw new Failure('error', 'payload_too_large');
    return { turns, truncated };
  }
}
