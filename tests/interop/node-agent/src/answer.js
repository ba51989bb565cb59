// The assistant's turn, from the lines of the stream: the answer, else the texts joined (CHAT-056).

export function answerOf(lines) {
  const events = lines.map(read).filter((event) => typeof event?.text === 'string');
  const answer = events.findLast(({ type }) => type === 'answer');
  return answer ? answer.text : events.filter(({ type }) => type === 'text').map(({ text }) => text).join('');
}

function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
