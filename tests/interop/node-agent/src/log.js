// One JSON line on stderr for each thing worth knowing: words, ids, codes and counts only (SEC-009, SEC-015).

export function log(event, facts = {}) {
  process.stderr.write(`${JSON.stringify({ at: new Date().toISOString(), event, ...facts })}\n`);
}
