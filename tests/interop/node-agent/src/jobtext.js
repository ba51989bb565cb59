// The text of a job, for agent2 and for the store.

const MAX_CHAT_BYTES = 16_384; // CHAT-012
const MAX_TEXT_BYTES = 65_536; // LA-030
const SENTENCES = { // LA-029
  fix: 'Find the cause of the incident and fix it.',
  implement: 'Implement what the incident asks for.',
};

// CHAT-018: the inline parts, joined with a blank line.
export function inlineText({ inputs }) {
  return inputs.map(({ inline }) => inline).filter((inline) => inline !== undefined).join('\n\n');
}

// The text for agent2, or {fault}: a chat's text is never shortened and never made up (CHAT-012, CHAT-017).
export function requestText(payload) {
  const text = inlineText(payload).trim();
  if (payload.kind === 'chat') {
    if (Buffer.byteLength(text) > MAX_CHAT_BYTES) return { fault: 'chat_prompt_too_large' };
    return text === '' ? { fault: 'chat_prompt_empty' } : { text };
  }
  if (text !== '') return { text: cut(text, MAX_TEXT_BYTES) };
  const incident = payload.incidentRef ? ` Incident: ${payload.incidentRef.id}.` : '';
  return { text: SENTENCES[payload.kind] + incident };
}

function cut(text, bytes) {
  let size = 0;
  let kept = '';
  for (const character of text) {
    size += Buffer.byteLength(character);
    if (size > bytes) return kept;
    kept += character;
  }
  return kept;
}
