// What a client program is asked on its standard input, and what it tells of each step; the same in Python.

import { readFileSync } from 'node:fs';

/** Run a client: `connect(asked)` gives {version, list, call, close}; whatever it throws is told. */
export async function answer(connect) {
  const asked = JSON.parse(readFileSync(0, 'utf8'));
  const told = { version: null, error: null, steps: [] };
  let client;
  try {
    client = await connect(asked);
    told.version = client.version ?? null;
    for (const step of asked.steps) told.steps.push(await take(client, step));
    await client.close();
  } catch (error) {
    told.error = errorOf(error);
  }
  process.stdout.write(JSON.stringify(told), () => process.exit(0));
}

async function take(client, step) {
  const began = performance.now();
  let said;
  try {
    said = step.do === 'list' ? { tools: await client.list() } : await call(client, step);
  } catch (error) {
    said = { error: errorOf(error) };
  }
  return { ...said, seconds: (performance.now() - began) / 1000 };
}

async function call(client, step) {
  const progress = [];
  const result = await client.call(step.tool, step.arguments, (told) => progress.push(told.progress));
  return {
    content: result.content,
    structured: result.structuredContent ?? null,
    isError: result.isError ?? false,
    progress,
  };
}

function errorOf(error) {
  return {
    name: error.constructor.name,
    code: error.code ?? null,
    status: error.status ?? null,
    message: String(error.message ?? error),
  };
}
