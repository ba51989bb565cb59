// The second TypeScript client: both wires.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

import { answer } from './asked.js';

const MODES = { 2025: 'legacy', 2026: { pin: '2026-07-28' } };

await answer(async (asked) => {
  const transport = new StreamableHTTPClientTransport(new URL(asked.url), { requestInit: { headers: asked.headers } });
  const client = new Client(
    { name: 'lab-interop', version: '1' },
    { versionNegotiation: { mode: MODES[asked.era] } },
  );
  await client.connect(transport);
  return {
    version: client.getNegotiatedProtocolVersion(),
    list: async () => (await client.listTools()).tools.map((tool) => tool.name),
    call: (name, given, onprogress) =>
      client.callTool({ name, arguments: given }, { timeout: asked.seconds * 1000, onprogress }),
    close: () => client.close(),
  };
});
