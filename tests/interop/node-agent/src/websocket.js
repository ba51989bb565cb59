// The package `ws`. Through `require`, which looks into NODE_PATH too: it may be installed outside this folder.

import { createRequire } from 'node:module';

function load() {
  try {
    return createRequire(import.meta.url)('ws');
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND') throw error;
    process.stderr.write('the package `ws` is not there: run `npm ci` in tests/interop/node-agent, or set NODE_PATH\n');
    return process.exit(2);
  }
}

export const WebSocket = load();
