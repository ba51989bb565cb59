// approval.decision: the token is checked here, then agent2 is told (LA-031, LA-032, A2-013).

import { isObject, parseStrictly } from './json.js';
import { log } from './log.js';
import { verifies } from './signatures.js';

export class Approvals {
  #settings;
  #agent2;
  #jobs;

  constructor({ settings, agent2, jobs }) {
    this.#settings = settings;
    this.#agent2 = agent2;
    this.#jobs = jobs;
  }

  decision = {
    refusal: ({ payload }) => (this.#isGenuine(payload) ? null : 'unauthorized'),
    act: async ({ payload: { approvalId, jobId, decision } }) => {
      if (!this.#jobs.runs(jobId)) return;
      const status = await this.#agent2.decide(approvalId, { jobId, decision });
      log('approval_told', { status, decision });
    },
  };

  #isGenuine({ approvalId, jobId, decision, token }) {
    const [version, body, signature] = token.split('.');
    const signed = `${version}.${body}`;
    if (![...this.#settings.trustedKeys.values()].some((key) => verifies(signed, key, signature))) return false;
    const claims = read(body);
    return isObject(claims) && claims.approvalId === approvalId && claims.jobId === jobId
      && claims.decision === decision && claims.tenantId === this.#settings.tenantId
      && typeof claims.exp === 'number' && claims.exp * 1000 > Date.now();
  }
}

function read(body) {
  try {
    return parseStrictly(Buffer.from(body, 'base64url').toString('utf8'));
  } catch {
    return null;
  }
}
