// Conversations and streams of chats, on this machine only: folders 0700, files 0600 (CHAT-025, CHAT-061).
//
//   streams/<job>.jsonl         {conversationId, workspaceId}, then {e} for each line, then {state} when it is closed
//   conversations/<id>.jsonl    {workspaceId}, then {role, ts, text} for each turn

import { EventEmitter } from 'node:events';
import { appendFileSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { masked } from './masking.js';

const MAX_LINE = 16_384;
const KEPT = 500;
const TRUNCATED = '{"type":"truncated"}';

const codePoints = (text) => [...text].length;
const line = (value) => `${JSON.stringify(value)}\n`;
const readLines = (path) => readFileSync(path, 'utf8').split('\n').filter(Boolean).map((text) => JSON.parse(text));

// The stream of one chat job.
class Stream {
  #path;
  #onChange;

  constructor(path, { conversationId, workspaceId }, events, isClosed, onChange) {
    this.#path = path;
    this.#onChange = onChange;
    this.conversationId = conversationId;
    this.workspaceId = workspaceId;
    this.events = events;
    this.isClosed = isClosed;
  }

  // CHAT-048: an empty line is not recorded; one that is too long keeps its place.
  append(text) {
    const safe = masked(text);
    if (safe === '' || this.isClosed) return;
    const e = codePoints(safe) > MAX_LINE ? TRUNCATED : safe;
    appendFileSync(this.#path, line({ e }));
    this.events.push(e);
    this.#onChange();
  }

  close(state) {
    appendFileSync(this.#path, line({ state }));
    this.isClosed = true;
    this.#onChange();
  }
}

export class ChatStore {
  #streams = new Map();
  #changes = new EventEmitter().setMaxListeners(0);
  #folders;

  // Throws when the folder cannot be made.
  constructor(folder) {
    this.#folders = { streams: join(folder, 'streams'), conversations: join(folder, 'conversations') };
    for (const place of [folder, ...Object.values(this.#folders)]) mkdirSync(place, { recursive: true, mode: 0o700 });
  }

  // CHAT-019, CHAT-018: the stream of a job, and the user's turn.
  begin({ jobId, conversationId, workspaceId, userText }) {
    this.#makeRoom();
    const path = this.#path('streams', jobId);
    writeFileSync(path, line({ conversationId, workspaceId }), { mode: 0o600, flag: 'wx' });
    const stream = new Stream(path, { conversationId, workspaceId }, [], false, () => this.#changes.emit('change'));
    this.#streams.set(jobId, stream);
    this.addTurn(stream, 'user', userText);
    this.#changes.emit('change');
    return stream;
  }

  addTurn({ conversationId, workspaceId }, role, text) {
    const path = this.#path('conversations', conversationId);
    if (!existsSync(path)) writeFileSync(path, line({ workspaceId }), { mode: 0o600 });
    appendFileSync(path, line({ role, ts: new Date().toISOString(), text: masked(text) }));
  }

  // The stream of a job, from disk when it is older than this process (and then closed), or null.
  stream(jobId) {
    const path = this.#path('streams', jobId);
    if (!this.#streams.has(jobId) && existsSync(path)) {
      const [head, ...rest] = readLines(path);
      const events = rest.filter(({ e }) => e !== undefined).map(({ e }) => e);
      this.#streams.set(jobId, new Stream(path, head, events, true, () => {}));
    }
    return this.#streams.get(jobId) ?? null;
  }

  // {workspaceId, turns}, or null. A job's id names the conversation it belongs to (CHAT-055).
  conversation(id) {
    const own = this.#path('conversations', id);
    const path = existsSync(own) ? own : this.#path('conversations', this.stream(id)?.conversationId ?? id);
    if (!existsSync(path)) return null;
    const [{ workspaceId }, ...turns] = readLines(path);
    return { workspaceId, turns };
  }

  // Resolves at the next change of any stream, after `ms` at the latest.
  changed(ms) {
    return new Promise((resolve) => {
      const done = () => { clearTimeout(timer); this.#changes.off('change', done); resolve(); };
      const timer = setTimeout(done, ms);
      this.#changes.on('change', done);
    });
  }

  #path(kind, id) { return join(this.#folders[kind], `${id}.jsonl`); }

  #makeRoom() {
    for (const folder of Object.values(this.#folders)) {
      const files = readdirSync(folder).map((name) => join(folder, name));
      if (files.length < KEPT) continue;
      const byAge = files.map((path) => [statSync(path).mtimeMs, path]).sort(([one], [other]) => one - other);
      byAge.slice(0, files.length - KEPT + 1).forEach(([, path]) => rmSync(path));
    }
  }
}
