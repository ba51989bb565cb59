// One socket: handshake, then frames both ways, until it ends.

import { closeCode, isFatal, isProtocolClose, isRetryable, judgesTheFrame } from './codes.js';
import { sessionLimits } from './limits.js';
import { log } from './log.js';
import { WebSocket } from './websocket.js';

const VERSION = '1.0.0';
const PING_MS = 30_000; // WS-024
const SILENCE_MS = 90_000; // WS-079
const OPEN_MS = 10_000; // WS-023
const CLOSING_MS = 1_000;
const MALFORMED_IN_A_ROW = 3;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export class Connection {
  #parts;
  #socket;
  #isReady = false;
  #isOver = false;
  #isFatalEnd = false;
  #malformed = 0;
  #lastHeard = Date.now();
  #timers = [];

  // `parts`: {settings, contract, frames, inspection, reliability, handlers, capabilities, digests, status, heartbeat,
  // onReady, onEnd}.
  // onEnd(isFatalEnd) is called once: whether a fatal error ended it.
  constructor(parts) {
    this.#parts = parts;
    const { settings } = parts;
    this.#socket = new WebSocket(settings.gatewayUrl, {
      headers: { authorization: `Bearer ${settings.gatewayToken}` }, // HS-002
      perMessageDeflate: false,
      handshakeTimeout: OPEN_MS,
      maxPayload: 1024 * 1024, // above the frame limit, so that frame_too_large can be told
    });
    this.#socket.on('open', () => this.#shakeHands());
    this.#socket.on('message', (data, isBinary) => this.#receive(data, isBinary));
    this.#socket.on('error', (error) => log('socket_error', { code: error.code ?? 'none' }));
    this.#socket.on('unexpected-response', (request, response) => {
      log('upgrade_refused', { status: response.statusCode });
      request.destroy();
      this.#end(1006);
    });
    this.#socket.on('close', (code) => this.#end(code));
  }

  close(code = 1000) {
    if (this.#isOver) return;
    this.#socket.close(code);
    setTimeout(() => { this.#socket.terminate(); this.#end(code); }, CLOSING_MS);
  }

  // --- what the reliability layer asks of a wire -----------------------------------------------------------------

  write(text) {
    if (!this.#isOver && this.#socket.readyState === WebSocket.OPEN) this.#socket.send(text);
  }

  timedOut({ msgId, seq }) {
    this.#refuse('timeout', { msgId, seq }); // SQ-020
  }

  // --- handshake -----------------------------------------------------------------------------------------------

  // HS-003, HS-007, HS-009: register and hello at once, ready within its time.
  #shakeHands() {
    const { settings, reliability, capabilities, status, digests } = this.#parts;
    const signatureMode = settings.signatureMode;
    const { sessionId, recvSeq } = reliability;
    const resume = sessionId === null ? undefined : { sessionId, lastRecvSeq: recvSeq }; // HS-006
    this.#control('register', {
      protocol: 2, version: VERSION, capabilities, signatureMode, workspaces: digests, resume,
    });
    this.#control('hello', { signatureMode, capabilities, ...status() });
    this.#after(settings.handshakeMs, () => {
      if (this.#isReady) return;
      log('no_ready_in_time');
      this.close(1000);
    });
  }

  #ready({ sessionId, resumed, peerLastSeq, limits }) {
    const { reliability, contract, onReady } = this.#parts;
    const isPossible = resumed
      ? sessionId === reliability.sessionId && reliability.canResumeAt(peerLastSeq)
      : peerLastSeq === 0; // RS-020
    if (!isPossible) {
      reliability.forget();
      return this.#refuse('handshake_violation');
    }
    const clamped = sessionLimits(limits, contract.limits);
    this.limits = clamped;
    this.ackTimeoutMs = clamped.ackTimeoutMs;
    this.maxRetransmissions = clamped.maxRetransmissions;
    this.#isReady = true;
    log('ready', { resumed, peerLastSeq });
    if (resumed) reliability.resume(this, peerLastSeq);
    else reliability.begin(this, sessionId);
    this.#every(clamped.heartbeatSeconds * 1000, () => this.#heartbeat());
    this.#every(PING_MS, () => this.#keepAlive());
    return onReady();
  }

  #heartbeat() {
    const { reliability, heartbeat } = this.#parts;
    if (!reliability.isWaiting('heartbeat')) reliability.send('heartbeat', { payload: heartbeat() }); // SQ-028
  }

  #keepAlive() {
    this.write('ping');
    if (Date.now() - this.#lastHeard > SILENCE_MS) this.#refuse('timeout');
  }

  // --- receiving -----------------------------------------------------------------------------------------------

  #receive(data, isBinary) {
    if (this.#isOver) return;
    this.#lastHeard = Date.now();
    const { inspection, reliability, contract } = this.#parts;
    const { word, code, frame } = inspection.inspect(data, isBinary, (seq, id) => reliability.isCopy(seq, id));
    if (word === 'ping') this.write('pong');
    if (word) return;
    if (frame && ['ack', 'error'].includes(frame.type)) this.#receiveControl(frame, code);
    else if (frame && this.#isReady && this.#comesBackRefused(frame)) this.#malformed = 0;
    else if (code) this.#refuse(code, frame);
    else if (frame.type === 'ready') this.#receiveReady(frame);
    else if (!this.#isReady) this.#refuse('not_ready', frame); // HS-017
    else if (!contract.isControl(frame.type)) this.#receiveData(frame);
  }

  #receiveReady(frame) {
    if (this.#isReady) this.#refuse('handshake_violation', frame); // HS-018
    else this.#ready(frame.payload);
  }

  // WS-085: never answered by an error; one that is malformed is dropped, and three in a row end the connection.
  #receiveControl(frame, code) {
    if (code) {
      this.#malformed += 1;
      log('malformed_dropped', { code, inARow: this.#malformed });
      if (this.#malformed >= MALFORMED_IN_A_ROW) this.#refuse('schema_violation');
      return;
    }
    this.#malformed = 0;
    const { reliability } = this.#parts;
    if (frame.type === 'ack' && this.#isReady) {
      reliability.acked(frame.payload);
      if (frame.ack !== undefined) reliability.ackedUpTo(frame.ack);
    } else if (frame.type === 'error') {
      log('error_from_gateway', { code: frame.payload.code });
      // A fatal one is followed by the peer's close; if it is not, close here. Before ready, any refusal ends it.
      if (isFatal(frame.payload.code)) this.#after(CLOSING_MS, () => this.close(1000));
      else if (!this.#isReady) this.close(1000);
    }
  }

  // A frame that was refused on an earlier connection is not judged for ever: it is rejected and counted.
  #comesBackRefused({ seq, msgId }) {
    const { reliability } = this.#parts;
    const code = reliability.refusedBefore(seq, msgId);
    if (code === null) return false;
    reliability.consume(seq, msgId);
    this.#ackFrame({ seq, msgId }, 'rejected', code);
    return true;
  }

  #receiveData(frame) {
    const { reliability, handlers } = this.#parts;
    this.#malformed = 0;
    const { seq, msgId, type } = frame;
    const place = reliability.place(seq, msgId);
    if (place !== 'new' && place !== 'duplicate') return this.#refuse(place, frame);
    if (frame.ack !== undefined) reliability.ackedUpTo(frame.ack);
    if (place === 'duplicate') return this.#ackFrame(frame, 'duplicate'); // SQ-008
    const handler = handlers[type];
    const code = handler ? handler.refusal(frame) : 'protocol_unsupported'; // SQ-009
    reliability.consume(seq, msgId); // SQ-012
    // SQ-015: the ack is written before any frame whose number covers this one.
    this.#ackFrame(frame, code ? 'rejected' : 'accepted', code ?? undefined);
    if (!code) handler.act(frame, this.limits);
    return undefined;
  }

  // --- sending -------------------------------------------------------------------------------------------------

  #control(type, payload) {
    const { frames, reliability } = this.#parts;
    const ack = ['ack', 'error'].includes(type) ? reliability.ack : undefined;
    this.write(frames.write(type, { ack, payload }).text);
  }

  #ackFrame({ seq, msgId }, status, errorCode) {
    this.#control('ack', { status, ackSeq: seq, ackMsgId: msgId, errorCode });
  }

  // WS-042, LA-008: the error frame first, the close only when it is fatal.
  #refuse(code, frame) {
    const refMsgId = UUID.test(frame?.msgId) ? frame.msgId : undefined;
    const refSeq = Number.isSafeInteger(frame?.seq) && frame.seq >= 0 ? frame.seq : undefined;
    log('refused', { code, seq: refSeq });
    if (this.#isReady && refMsgId && refSeq > 0 && code !== 'timeout' && judgesTheFrame(code)) {
      this.#parts.reliability.rememberRefusal(refSeq, refMsgId, code);
    }
    this.#control('error', { code, retryable: isRetryable(code), refMsgId, refSeq });
    if (isFatal(code)) {
      this.#parts.reliability.suspend();
      this.#isFatalEnd = true;
      this.close(closeCode(code));
      this.#isDeaf();
    }
  }

  // After its own fatal error it takes nothing in any more; only the close is awaited.
  #isDeaf() {
    this.#socket.removeAllListeners('message');
    this.#socket.on('message', () => {});
  }

  #end(code) {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#timers.forEach((timer) => clearTimeout(timer));
    this.#parts.reliability.suspend();
    log('disconnected', { code });
    this.#parts.onEnd(this.#isFatalEnd || isProtocolClose(code));
  }

  #after(ms, act) {
    this.#timers.push(setTimeout(() => { if (!this.#isOver) act(); }, ms));
  }

  #every(ms, act) {
    this.#timers.push(setInterval(() => { if (!this.#isOver) act(); }, ms));
  }
}
