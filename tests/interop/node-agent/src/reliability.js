// Numbers, acks, copies: what makes the frames of a session arrive once and in order.
//
// It outlives a socket. Frames wait in a queue without a number, get one when the window has room, and keep their
// bytes until the peer has them.

import { FrameRefused } from './frames.js';
import { log } from './log.js';

const QUEUE = 256; // SQ-017
const PAIRS = 512; // SQ-005

// A frame on its way. `admitted`: whether it got a number. `settled`: 'acked', or the code of its failure.
class Outgoing {
  constructor(type, content, again) {
    this.type = type;
    this.content = content;
    this.again = again;
    this.admitted = new Promise((resolve) => { this.admit = resolve; });
    this.settled = new Promise((resolve) => { this.settle = resolve; });
  }

  fail(code) {
    this.admit(false);
    this.settle(code);
  }
}

export class Reliability {
  #frames;
  #maxInFlight;
  #queue = [];
  #unacked = [];
  #nextSeq = 1;
  #highestAcked = 0;
  #pairs = new Map();
  #refused = new Map();
  #wire = null;

  constructor(frames, maxInFlight) {
    this.#frames = frames;
    this.#maxInFlight = maxInFlight;
    this.sessionId = null;
    this.recvSeq = 0;
    this.epoch = 0;
    this.progress = 0;
  }

  // --- sending -------------------------------------------------------------------------------------------------

  // SQ-018: null when the queue is full. `again`: when the session is lost, send it as a new frame (RS-006).
  send(type, content, { again = false } = {}) {
    if (this.#queue.length >= QUEUE) return null;
    const outgoing = new Outgoing(type, content, again);
    this.#queue.push(outgoing);
    this.#pump();
    return outgoing;
  }

  isWaiting(type) {
    return [...this.#queue, ...this.#unacked].some((outgoing) => outgoing.type === type);
  }

  get ack() {
    return this.recvSeq || undefined;
  }

  #pump() {
    while (this.#wire && this.#queue.length > 0 && this.#unacked.length < this.#maxInFlight) {
      const outgoing = this.#queue.shift();
      try {
        Object.assign(outgoing, this.#frames.write(outgoing.type, {
          ...outgoing.content, seq: this.#nextSeq, ack: this.ack,
        }));
      } catch (error) {
        if (!(error instanceof FrameRefused)) throw error;
        log('frame_not_sent', { why: error.message });
        outgoing.fail('internal');
        continue;
      }
      outgoing.seq = this.#nextSeq;
      this.#nextSeq += 1;
      this.#unacked.push(outgoing);
      this.#transmit(outgoing);
      outgoing.admit(true);
    }
  }

  #transmit(outgoing) {
    outgoing.copies = 0;
    this.#wire.write(outgoing.text);
    this.#awaitAck(outgoing);
  }

  // SQ-019, SQ-021: the same bytes again after each ack timeout, at most three times.
  #awaitAck(outgoing) {
    clearTimeout(outgoing.timer);
    outgoing.timer = setTimeout(() => {
      if (outgoing.copies < this.#wire.maxRetransmissions) {
        outgoing.copies += 1;
        log('sent_again', { type: outgoing.type, seq: outgoing.seq, copies: outgoing.copies });
        this.#wire.write(outgoing.text);
        this.#awaitAck(outgoing);
      } else {
        outgoing.settle('timeout'); // SQ-020: the frame itself is kept for the resume.
        this.#wire.timedOut(outgoing);
      }
    }, this.#wire.ackTimeoutMs);
  }

  // SQ-014: an ack frame settles the one that it names.
  acked({ ackSeq, ackMsgId, status, errorCode }) {
    const outgoing = this.#unacked.find(({ seq, msgId }) => seq === ackSeq && msgId === ackMsgId);
    if (outgoing) this.#settle(outgoing, status === 'rejected' ? errorCode : 'acked');
    this.#pump();
  }

  // SQ-014: a number settles all up to it. SQ-016: one above all that was sent is ignored.
  ackedUpTo(number) {
    if (number >= this.#nextSeq) {
      log('ack_of_nothing_sent', { ack: number });
      return;
    }
    for (const outgoing of this.#unacked.filter(({ seq }) => seq <= number)) this.#settle(outgoing, 'acked');
    this.#pump();
  }

  #settle(outgoing, how) {
    clearTimeout(outgoing.timer);
    this.#unacked.splice(this.#unacked.indexOf(outgoing), 1);
    this.#highestAcked = Math.max(this.#highestAcked, outgoing.seq);
    this.progress += 1;
    outgoing.settle(how);
  }

  // --- receiving -----------------------------------------------------------------------------------------------

  isCopy(seq, msgId) {
    return this.#pairs.get(seq) === msgId;
  }

  // 'new', 'duplicate', or the code to refuse with (SQ-002, SQ-003, SQ-004, SQ-006).
  place(seq, msgId) {
    if (this.isCopy(seq, msgId)) return 'duplicate';
    if (seq <= this.recvSeq) return 'seq_replayed';
    return seq === this.recvSeq + 1 ? 'new' : 'seq_gap';
  }

  consume(seq, msgId) {
    this.recvSeq = seq;
    this.progress += 1;
    this.#pairs.set(seq, msgId);
    this.#pairs.delete(seq - PAIRS);
    this.#refused.delete(seq);
  }

  rememberRefusal(seq, msgId, code) {
    if (seq === this.recvSeq + 1) this.#refused.set(seq, { msgId, code, wire: this.#wire });
  }

  // The code with which this frame was refused on an earlier connection, or null.
  refusedBefore(seq, msgId) {
    const refusal = this.#refused.get(seq);
    return refusal && refusal.msgId === msgId && refusal.wire !== this.#wire ? refusal.code : null;
  }

  // --- the session ---------------------------------------------------------------------------------------------

  // Whether a resume that says so can be true.
  canResumeAt(peerLastSeq) {
    return peerLastSeq < this.#nextSeq && peerLastSeq >= this.#highestAcked;
  }

  // RS-002, RS-003: what the peer has is settled, the rest goes out again with the same bytes.
  resume(wire, peerLastSeq) {
    this.#wire = wire;
    for (const outgoing of this.#unacked.filter(({ seq }) => seq <= peerLastSeq)) this.#settle(outgoing, 'acked');
    for (const outgoing of this.#unacked) this.#transmit(outgoing);
    this.#pump();
  }

  begin(wire, sessionId) {
    this.forget();
    this.sessionId = sessionId;
    this.#wire = wire;
    this.#pump();
  }

  // The socket is gone; the session stays.
  suspend() {
    this.#wire = null;
    for (const { timer } of this.#unacked) clearTimeout(timer);
  }

  // RS-005, RS-006: the session is lost. Chunks fail, waiting or not (RS-014); other waiting frames stay.
  forget() {
    this.suspend();
    const isLost = (outgoing) => outgoing.type === 'content.response';
    const [unacked, queue] = [this.#unacked, this.#queue];
    this.#unacked = [];
    this.#queue = [...unacked.filter(({ again }) => again), ...queue.filter((outgoing) => !isLost(outgoing))];
    for (const outgoing of unacked.filter(({ again }) => !again)) outgoing.fail('agent_offline');
    for (const outgoing of queue.filter(isLost)) outgoing.fail('agent_offline');
    this.sessionId = null;
    this.recvSeq = 0;
    this.#nextSeq = 1;
    this.#highestAcked = 0;
    this.#pairs.clear();
    this.#refused.clear();
    this.epoch += 1;
  }
}
