// Running one job at agent2 (LA-016).

import { setTimeout as sleep } from 'node:timers/promises';
import { answerOf } from './answer.js';
import { followEvents, followLines } from './follow.js';
import { inlineText, requestText } from './jobtext.js';
import { log } from './log.js';
import { cancelled, codeOfStatus, failed, outcomeOf } from './outcome.js';

const JOB_MS = 3_600_000;
const CANCEL_MS = 10_000; // LA-021
const DRAIN_MS = 3_000; // CHAT-031
const TERMINAL = new Set(['done', 'failed', 'cancelled']);
const EVENT_MEMBERS = ['phase', 'iteration', 'filesChanged', 'costMicros', 'tokensIn', 'tokensOut'];
const STATES = new Set(['queued', 'preparing', 'running', 'waiting_approval']);

export class Runner {
  #parts;

  // `parts`: {settings, contract, agent2, chats, send(type, workspaceId, payload), onChatVanished()}.
  constructor(parts) { this.#parts = parts; }

  // The payload of the job.result. Never throws.
  async run(job) {
    let stream = null;
    let result;
    try {
      if (job.kind === 'chat') stream = this.openChat(job); // CHAT-019
    } catch (error) {
      log('chat_store_unavailable', { job: short(job), code: error.code ?? error.name }); // CHAT-020
      return { jobId: job.jobId, ...failed('infra') };
    }
    try {
      result = await this.#steps(job, stream);
    } catch (error) {
      log('job_broke', { job: short(job), why: error.code ?? error.name });
      result = job.cancel.signal.aborted ? cancelled() : failed('infra');
    }
    if (stream) this.closeChat(stream, result.outcome);
    return { jobId: job.jobId, ...result };
  }

  openChat({ jobId, workspaceId, payload }) {
    const conversationId = payload.options?.conversationId ?? jobId; // CHAT-055
    return this.#parts.chats.begin({ jobId, conversationId, workspaceId, userText: inlineText(payload) });
  }

  closeChat(stream, outcome) {
    const answer = answerOf(stream.events);
    if (answer !== '') this.#parts.chats.addTurn(stream, 'assistant', answer);
    stream.close(['failed', 'cancelled'].includes(outcome) ? outcome : 'done'); // CHAT-022
  }

  async #steps(job, stream) {
    const { settings, agent2, onChatVanished } = this.#parts;
    const { jobId, kind, workspaceId, payload } = job;
    const root = settings.workspaces.find((workspace) => workspace.workspaceId === workspaceId)?.path;
    if (root === undefined) return failed('infra');
    const { up, kinds } = await agent2.health();
    if (job.cancel.signal.aborted) return cancelled(); // LA-017, CHAT-024
    if (kind === 'chat' && !kinds.includes('chat')) { // CHAT-023
      onChatVanished();
      return this.#noted(job, 'chat_unsupported_by_agent2', 'infra');
    }
    if (!up) return this.#noted(job, 'agent2_unavailable', 'infra');
    const { text, fault } = requestText(payload);
    if (fault) return this.#noted(job, fault, 'unknown');
    const status = await agent2.startJob({
      jobId, tenantId: settings.tenantId, workspaceId, kind, requestText: text, workspaceRoot: root,
      repoRef: payload.repoRef, llm: payload.llm, incidentId: payload.incidentRef?.id, options: payload.options,
    });
    if (status < 200 || status > 299) return failed(codeOfStatus(status));
    this.#event(job, { state: 'running', phase: 'context' }); // LA-018
    return this.#follow(job, stream);
  }

  async #follow(job, stream) {
    const { agent2, contract } = this.#parts;
    const over = new AbortController();
    const signal = over.signal;
    const deadline = setTimeout(() => { job.timedOut = true; job.stop('timeout'); }, JOB_MS);
    try {
      const lines = stream
        ? followLines(agent2, job.jobId, signal, (text) => stream.append(text))
        : Promise.resolve();
      const seen = { said: null, terminal: null, mostFiles: 0 };
      const events = this.#events(job, seen, signal);
      await Promise.race([events, this.#cancelAtAgent2(job, signal)]);
      await Promise.race([lines, sleep(DRAIN_MS, undefined, { signal }).catch(() => {})]); // CHAT-030
      if (job.timedOut && seen.said?.outcome !== 'no_change' && seen.said?.outcome !== 'pr_opened') {
        return failed('timeout');
      }
      if (seen.said) {
        if (job.kind === 'chat' && seen.said.outcome === 'pr_opened') log('chat_unexpected_pr', { job: short(job) });
        return outcomeOf(seen.said, job.kind, seen.mostFiles, contract);
      }
      if (job.cancel.signal.aborted || seen.terminal === 'cancelled') return cancelled();
      return failed(seen.terminal === 'failed' ? 'unknown' : 'infra'); // LA-027, A2-051
    } finally {
      clearTimeout(deadline);
      over.abort(); // LA-028
    }
  }

  #events(job, seen, signal) {
    const identity = { jobId: job.jobId, tenantId: this.#parts.settings.tenantId };
    return followEvents(this.#parts.agent2, identity, signal, ({ type, payload, ts }) => {
      if (type === 'job.event') this.#progress(job, payload, seen);
      else if (type === 'audit.event') this.#audit(job, payload, ts);
      else if (type === 'job.result') seen.said = payload;
      return type === 'job.result';
    });
  }

  // LA-020, LA-022: exactly one cancel, then a while for agent2's own end.
  async #cancelAtAgent2(job, over) {
    await new Promise((resolve) => {
      if (job.cancel.signal.aborted) resolve();
      job.cancel.signal.addEventListener('abort', resolve, { once: true });
      over.addEventListener('abort', resolve, { once: true });
    });
    if (over.aborted) return;
    await this.#parts.agent2.cancelJob(job.jobId, job.reason);
    await sleep(CANCEL_MS, undefined, { signal: over }).catch(() => {});
  }

  // LA-019, CHAT-011: terminal events stay here and feed no maximum.
  #progress(job, payload, seen) {
    if (payload.terminal === true || TERMINAL.has(payload.state)) {
      seen.terminal = TERMINAL.has(payload.state) ? payload.state : 'done';
      return;
    }
    if (Number.isSafeInteger(payload.filesChanged)) seen.mostFiles = Math.max(seen.mostFiles, payload.filesChanged);
    const state = STATES.has(payload.state) ? payload.state : 'running';
    this.#event(job, { state, ...this.#known('job.event', payload, EVENT_MEMBERS) });
  }

  // TY-028: members that the contract knows, nothing else.
  #audit(job, payload, ts) {
    const members = this.#parts.contract.membersOf('audit.event');
    const at = typeof ts === 'string' ? ts : new Date().toISOString();
    this.#parts.send('audit.event', job.workspaceId, {
      at, ...this.#known('audit.event', payload, members), jobId: job.jobId,
    });
  }

  #known(type, payload, members) {
    const { contract } = this.#parts;
    return Object.fromEntries(members
      .filter((member) => Object.hasOwn(payload, member) && contract.holdsMember(type, member, payload[member]))
      .map((member) => [member, payload[member]]));
  }

  #event(job, payload) {
    this.#parts.send('job.event', job.workspaceId, { jobId: job.jobId, ...payload });
  }

  #noted(job, note, code) {
    log(note, { job: short(job) }); // LA-035
    return failed(code);
  }
}

const short = ({ jobId }) => jobId.slice(0, 8);
