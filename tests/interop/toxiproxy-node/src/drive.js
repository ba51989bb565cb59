// One part of what the client can do, against the server at a URL; what came of it is told as JSON.
//
//     node src/drive.js proxies|toxics|effects|refusals URL

import net from 'node:net';

import client from 'toxiproxy-node-client';

const { Toxiproxy, ToxiproxyError } = client;
const LISTEN = 'localhost:0';
const NOBODY = '127.0.0.1:1';
const LONGEST_MS = 20_000;

const PARTS = { proxies, toxics, effects, refusals };
const [part, url] = process.argv.slice(2);
const told = await PARTS[part](new Toxiproxy(url));
process.stdout.write(JSON.stringify(told), () => process.exit(0));

async function proxies(server) {
  const version = JSON.parse(await server.getVersion());
  const made = await server.createProxy({ name: 'a', listen: LISTEN, upstream: NOBODY });
  const off = await made.update({ ...made.toJson(), enabled: false });
  const populated = await server.populate([
    { name: 'a', listen: off.listen, upstream: NOBODY },
    { name: 'b', listen: LISTEN, upstream: NOBODY },
  ]);
  const untouched = await server.get('a');
  await server.reset();
  const on = await server.get('a');
  await populated.b.remove();
  const left = await server.getAll();
  return {
    version,
    made: made.toJson(),
    off: off.toJson(),
    populated: Object.keys(populated),
    untouched: untouched.toJson(),
    on: on.toJson(),
    left: Object.keys(left),
  };
}

async function toxics(server) {
  const proxy = await server.createProxy({ name: 'a', listen: LISTEN, upstream: NOBODY });
  const all = {
    latency: { latency: 5, jitter: 1 },
    bandwidth: { rate: 10 },
    slow_close: { delay: 5 },
    timeout: { timeout: 5 },
    reset_peer: { timeout: 5 },
    slicer: { average_size: 10, size_variation: 2, delay: 1 },
    limit_data: { bytes: 10 },
    noop: {},
  };
  const seen = [];
  for (const [type, attributes] of Object.entries(all)) {
    const added = await proxy.addToxic({ type, name: `my ${type}`, stream: 'upstream', toxicity: 1, attributes });
    const found = await proxy.getToxic(added.name);
    const changed = await found.update({ toxicity: 0.5, attributes: {} });
    await changed.remove();
    const status = await statusOf(() => proxy.getToxic(added.name));
    seen.push({ asked: { type, attributes }, found: found.toJson(), changed: changed.toJson(), afterwards: status });
  }
  const unnamed = await proxy.addToxic({ type: 'latency', attributes: {} });
  return { seen, unnamed: unnamed.toJson() };
}

async function effects(server) {
  const upstream = net.createServer({ allowHalfOpen: true }, (socket) => socket.on('error', () => {}).pipe(socket));
  await new Promise((ready) => upstream.listen(0, '127.0.0.1', ready));
  const proxy = await server.createProxy({ name: 'a', listen: LISTEN, upstream: `127.0.0.1:${upstream.address().port}` });
  const under = async (type, attributes) => {
    const toxic = await proxy.addToxic({ type, attributes });
    const talk = await said(proxy, 'twelve bytes');
    await toxic.remove();
    return talk;
  };
  const talks = {
    none: await said(proxy, 'twelve bytes'),
    latency: await under('latency', { latency: 200, jitter: 0 }),
    slow_close: await under('slow_close', { delay: 200 }),
    slicer: await under('slicer', { average_size: 1, size_variation: 0, delay: 20_000 }),
    limit_data: await under('limit_data', { bytes: 6 }),
    timeout: await under('timeout', { timeout: 200 }),
    reset_peer: await under('reset_peer', { timeout: 0 }),
  };
  const off = await proxy.update({ ...proxy.toJson(), enabled: false });
  talks.off = await said(off, 'twelve bytes');
  await server.reset();
  talks.reset = await said(proxy, 'twelve bytes');
  return talks;
}

/** Say something to an echo behind a proxy, then FIN: what came back, how it ended, and after how many seconds. */
function said(proxy, words) {
  const [host, port] = proxy.listen.split(':');
  const began = performance.now();
  return new Promise((done) => {
    let heard = '';
    const end = (how) => done({ heard, how, seconds: (performance.now() - began) / 1000 });
    const socket = net.connect({ host, port: Number(port) });
    socket.setTimeout(LONGEST_MS, () => end('nothing came'));
    socket.on('connect', () => socket.end(words));
    socket.on('data', (data) => (heard += data));
    socket.on('end', () => end('FIN'));
    socket.on('error', (error) => end(error.code));
  });
}

async function refusals(server) {
  const proxy = await server.createProxy({ name: 'a', listen: LISTEN, upstream: NOBODY });
  const toxic = { type: 'noop', attributes: {} };
  await proxy.addToxic(toxic);
  return {
    'a proxy that is not there': await statusOf(() => server.get('b')),
    'a name that is taken': await statusOf(() => server.createProxy(proxy.toJson())),
    'a proxy without a name': await statusOf(() => server.createProxy({ listen: LISTEN, upstream: NOBODY })),
    'a port that is taken': await statusOf(() => server.createProxy({ ...proxy.toJson(), name: 'b' })),
    'a type that is none': await statusOf(() => proxy.addToxic({ ...toxic, type: 'none' })),
    'a stream that is none': await statusOf(() => proxy.addToxic({ ...toxic, name: 'x', stream: 'sideways' })),
    'a toxic that is taken': await statusOf(() => proxy.addToxic(toxic)),
    'a list with a bad proxy': await statusOf(() => server.populate([{ name: 'c' }])),
  };
}

/** The status with which a call is refused, as the client's own error names it. */
async function statusOf(call) {
  try {
    await call();
    return 'taken';
  } catch (error) {
    const status = error instanceof ToxiproxyError && /status code (\d+)$/.exec(error.message);
    return status ? Number(status[1]) : `${error.name}: ${error.message}`;
  }
}
