// Reading JSON strictly: a repeated member is refused (WS-034), which JSON.parse lets pass.

const STRING = /"(?:[^"\\]|\\.)*"/y;
const BLANK = /[ \t\r\n]*/y;

export function parseStrictly(text) {
  const value = JSON.parse(text);
  refuseRepeatedMembers(text);
  return value;
}

// The text is known to be JSON: a string with a colon behind it is a member's name.
function refuseRepeatedMembers(text) {
  const open = [];
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (character === '{') open.push(new Set());
    else if (character === '[') open.push(null);
    else if (character === '}' || character === ']') open.pop();
    else if (character === '"') {
      STRING.lastIndex = at;
      const [literal] = STRING.exec(text);
      BLANK.lastIndex = at + literal.length;
      BLANK.exec(text);
      if (text[BLANK.lastIndex] === ':') {
        const name = JSON.parse(literal);
        const names = open[open.length - 1];
        if (names.has(name)) throw new SyntaxError('a member stands twice');
        names.add(name);
      }
      at += literal.length - 1;
    }
  }
}

export const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

// SG-006: the order of members does not matter, numbers compare by value.
export function sameValue(one, other) {
  if (Array.isArray(one)) {
    return Array.isArray(other) && one.length === other.length && one.every((item, i) => sameValue(item, other[i]));
  }
  if (isObject(one)) {
    const names = Object.keys(one);
    return isObject(other) && names.length === Object.keys(other).length
      && names.every((name) => Object.hasOwn(other, name) && sameValue(one[name], other[name]));
  }
  return one === other;
}
