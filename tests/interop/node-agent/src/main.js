// A Local Agent: puts the parts together and runs until it is told to stop.

import { Agent2 } from './agent2.js';
import { Approvals } from './approvals.js';
import { ChatStore } from './chatstore.js';
import { Content } from './content.js';
import { Contract } from './contract.js';
import { Frames } from './frames.js';
import { Inspection } from './inspection.js';
import { Jobs } from './jobs.js';
import { Link } from './link.js';
import { log } from './log.js';
import { Reliability } from './reliability.js';
import { Runner } from './runner.js';
import { readSettings } from './settings.js';
import { Signatures } from './signatures.js';

const ALWAYS = ['job.assign', 'job.options', 'job.inline.16k']; // CHAT-004

function openStore({ chat, stateFolder }) {
  if (!chat) return null;
  try {
    return new ChatStore(stateFolder);
  } catch (error) {
    log('chat_store_unavailable', { code: error.code ?? error.name });
    return null;
  }
}

function start(settings) {
  const contract = new Contract();
  const frames = new Frames(contract, settings);
  const reliability = new Reliability(frames, settings.maxInFlight);
  const agent2 = new Agent2(settings);
  const chats = openStore(settings);
  let servesChat = false;

  // CHAT-003: chat needs the store and an agent2 that lists it.
  const capabilities = async () => {
    servesChat = chats !== null && (await agent2.health()).kinds.includes('chat');
    if (chats !== null && !servesChat) log('chat_probe_negative', { mode: 'attach' });
    return servesChat ? [...ALWAYS, 'job.chat'] : ALWAYS;
  };
  const runner = new Runner({
    settings, contract, agent2, chats,
    send: (type, workspaceId, payload) => {
      const sent = reliability.send(type, { workspaceId, payload }, { again: type === 'audit.event' });
      if (sent === null) log('dropped_queue_full', { type });
    },
    onChatVanished: () => { servesChat = false; },
  });
  const jobs = new Jobs({
    runner, reliability, kinds: () => (servesChat ? ['fix', 'implement', 'chat'] : ['fix', 'implement']), // LA-009
  });
  const link = new Link({
    settings, contract, frames, reliability, jobs, capabilities,
    inspection: new Inspection(contract, new Signatures(settings), settings),
    handlers: {
      'job.assign': jobs.assign,
      'job.cancel': jobs.cancel,
      'content.request': new Content({ jobs, chats, reliability }).request,
      'approval.decision': new Approvals({ settings, agent2, jobs }).decision,
    },
  });
  link.start();
  return link;
}

function main() {
  let link;
  try {
    link = start(readSettings(process.env));
  } catch (error) {
    log('cannot_start', { why: error.message });
    process.exitCode = 2;
    return;
  }
  const stop = () => {
    link.stop();
    setTimeout(() => process.exit(0), 500);
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
}

main();
