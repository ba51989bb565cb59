// The first TypeScript client: the wire of 2025.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { answer } from './asked.js';

await answer(async (asked) => {
  const transport = new StreamableHTTPClientTransport(new URL(asked.url), { requestInit: { headers: asked.headers } });
  const client = new Client({ name: 'lab-interop', version: '1' });
  await client.connect(transport);
  return {
    version: transport.protocolVersion,
    list: async () => (await client.listTools()).tools.map((tool) => tool.name),
    call: (name, given, onprogress) =>
      client.callTool({ name, arguments: given }, undefined, { timeout: asked.seconds * 1000, onprogress }),
    close: () => client.close(),
  };
});
