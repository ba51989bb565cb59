// A follower over `eventsource`, which comes back by itself after a cut, and after an end: the last event closes it.

import { readFileSync } from 'node:fs';

import { EventSource } from 'eventsource';

const NAMES = ['turn', 'text', 'tool_call', 'tool_result', 'done', 'run_status', 'message', 'error'];
const LAST = ['run_status', 'error'];

const asked = JSON.parse(readFileSync(0, 'utf8'));
const heard = [];
// While it waits to come back, `eventsource` does not hold its program.
const held = setInterval(() => {}, 1000);
const source = new EventSource(asked.url, {
  fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, ...asked.headers } }),
});
for (const name of NAMES) {
  source.addEventListener(name, (event) => {
    // A lost connection is an `error` as well, but one that carries no data.
    if (event.data === undefined) return;
    heard.push({ id: event.lastEventId, name: event.type, data: JSON.parse(event.data) });
    if (!LAST.includes(name)) return;
    source.close();
    clearInterval(held);
    process.stdout.write(JSON.stringify(heard));
  });
}
