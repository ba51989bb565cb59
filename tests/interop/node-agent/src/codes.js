// The wire codes. Their order numbers them: a fatal one closes with 4400 + its position (WS-039, WS-040).

export const CODES = [
  'bad_frame', 'unknown_type', 'schema_violation', 'frame_too_large', 'payload_too_large', 'wrong_direction',
  'handshake_violation', 'not_ready', 'seq_gap', 'seq_replayed', 'chunk_out_of_order', 'chunk_inconsistent',
  'tenant_mismatch', 'agent_mismatch', 'params_mismatch', 'signature_mode_insufficient', 'clock_skew',
  'protocol_unsupported', 'unauthorized', 'agent_offline', 'timeout', 'rate_limited', 'internal',
];

const NOT_FATAL = new Set(['protocol_unsupported', 'agent_offline', 'rate_limited', 'internal']);
const RETRYABLE = new Set(['agent_offline', 'timeout', 'rate_limited', 'internal', 'clock_skew', 'not_ready']);
// They judge where a frame stands, not what it is: the same frame may be right after a resume.
const OF_PLACE = new Set(['seq_gap', 'seq_replayed', 'not_ready', 'handshake_violation']);

export const closeCode = (code) => 4400 + CODES.indexOf(code);
export const isFatal = (code) => !NOT_FATAL.has(code); // WS-043
export const isRetryable = (code) => RETRYABLE.has(code); // WS-044
export const judgesTheFrame = (code) => isFatal(code) && !OF_PLACE.has(code);
export const isProtocolClose = (number) => number >= 4400 && number <= 4499;
