// What must not leave the machine inside a text (CHAT-026, SEC-017). A text without secrets stays as it is
// (CHAT-027), and a JSON text stays JSON: no pattern takes in a quote or a backslash.

const MASK = '[masked]';
const PATTERNS = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[^"]*?-----END [A-Z ]*PRIVATE KEY-----/g, MASK],
  [/\b(Bearer\s+)[A-Za-z0-9._~+/=-]+/gi, `$1${MASK}`],
  [/\b(?:sk-[A-Za-z0-9_-]{8,}|ghp_[A-Za-z0-9]{8,}|AKIA[A-Z0-9]{12,})/g, MASK],
  [/\b((?:password|passwd|pwd|secret|token|api[_-]?key)\s*=\s*(?:\\?["'])?)[^\s"'\\,;&]+/gi, `$1${MASK}`],
];

export function masked(text) {
  return PATTERNS.reduce((soFar, [pattern, by]) => soFar.replace(pattern, by), text);
}
