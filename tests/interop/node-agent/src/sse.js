// Server-sent events, as far as agent2 uses them (A2-024 to A2-031).

const MAX_LINE = 256 * 1024; // A2-020

export class TooLong extends Error {}

export class EventParser {
  #decoder = new TextDecoder(); // A2-035
  #rest = '';
  #name = 'message';
  #data = [];

  // The events that `bytes` complete, as {name, data}.
  push(bytes) {
    this.#rest += this.#decoder.decode(bytes, { stream: true });
    const lines = this.#rest.split('\n');
    this.#rest = lines.pop();
    if (this.#rest.length > 2 * MAX_LINE) throw new TooLong(); // A2-029, A2-030
    return lines.flatMap((line) => this.#line(line.endsWith('\r') ? line.slice(0, -1) : line));
  }

  // A2-031: what is pending counts only when no line was begun.
  end() {
    return this.#rest.trim() === '' ? this.#dispatch() : [];
  }

  #line(line) {
    if (line === '') return this.#dispatch();
    if (line.startsWith('event:')) this.#name = line.slice(6).trim();
    else if (line.startsWith('data:')) this.#data.push(line.slice(line[5] === ' ' ? 6 : 5));
    return []; // A2-026, A2-027
  }

  #dispatch() {
    const event = { name: this.#name, data: this.#data.join('\n') };
    const counts = this.#data.length > 0 || event.name !== 'message'; // A2-028
    this.#name = 'message';
    this.#data = [];
    return counts ? [event] : [];
  }
}
