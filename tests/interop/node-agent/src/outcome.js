// The result of a job, from what agent2 said.

const RESULT_MEMBERS = ['prUrl', 'branch', 'commitSha', 'filesChangedCount', 'diffSha256', 'tests'];
const HTTP_CODES = { 403: 'policy_denied', 400: 'unknown', 422: 'unknown' }; // A2-045

export const failed = (errorCode) => ({ outcome: 'failed', errorCode });
export const cancelled = () => ({ outcome: 'cancelled' }); // LA-024
export const codeOfStatus = (status) => HTTP_CODES[status] ?? 'infra';

// `said`: the payload of agent2's job.result. `mostFiles`: the largest filesChanged of its events.
export function outcomeOf(said, kind, mostFiles, contract) {
  const holds = (member) => contract.holdsMember('job.result', member, said[member]);
  if (!Object.hasOwn(said, 'outcome') || !holds('outcome')) return failed('infra');
  if (said.outcome === 'cancelled') return cancelled();
  if (said.outcome === 'failed') {
    return failed(Object.hasOwn(said, 'errorCode') && holds('errorCode') ? said.errorCode : 'unknown');
  }
  const result = { outcome: said.outcome };
  for (const member of RESULT_MEMBERS) { // LA-025
    if (Object.hasOwn(said, member) && holds(member)) result[member] = said[member];
  }
  if (kind === 'chat') result.filesChangedCount = Math.max(result.filesChangedCount ?? 0, mostFiles); // CHAT-009, CHAT-010
  return result;
}
