"""The first JSON value of some bytes, read and refused as Go's encoding/json does.

Bytes behind the value are nobody's. A tree keeps what a decoder must see: the members of an object in their order,
doubled ones too, and the literal of a number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from lab.errors import RemoteError

MAX_BYTES = 1 << 20
"""A longer text is refused unread."""
MAX_DEPTH = 10_000
"""Arrays and objects in one another; the bound of Go's decoder."""


class GoJsonError(RemoteError):
    """Bytes that Go would not decode; the message is the one Go gives."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it stands in the text."""

    literal: str


@dataclass(frozen=True, slots=True)
class Object:
    """The members of an object in the order of the text."""

    members: list[tuple[str, Value]]


Value: TypeAlias = bool | str | Number | list["Value"] | Object | None

_SPACE = re.compile(r"[ \t\r\n]*+")
_NUMBER = re.compile(r"-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+")
_PLAIN = r'[^"\\\x00-\x1f]*+'
_STRING = re.compile(rf'"{_PLAIN}(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{{4}}){_PLAIN})*+')
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_PAIR = re.compile("([\ud800-\udbff])([\udc00-\udfff])")
_LONE = re.compile("[\ud800-\udfff]")
_WORDS: dict[str, tuple[str, bool | None]] = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}
_HEX = "0123456789abcdefABCDEF"
_DIGITS = "0123456789"


def scan_untrusted(data: bytes) -> Value:
    """The first value of `data`. Raises `GoJsonError`, and nothing else, for what Go refuses."""
    if len(data) > MAX_BYTES:
        raise GoJsonError("http: request body too large")
    # A byte becomes a character, since Go names and refuses bytes.
    return _Scan(data.decode("latin-1")).value()


class _Scan:
    """One pass over a text. Open arrays and objects lie on a stack, so that depth costs no recursion."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._open: list[list[Value] | Object] = []
        self._keys: list[str] = []

    def value(self) -> Value:
        """Read to the end of the first value."""
        while True:
            value, opened = self._begin()
            if opened:
                continue
            while self._open:
                done = self._put(value)
                if done is None:
                    break
                value = done
            else:
                return value

    def _begin(self) -> tuple[Value, bool]:
        """A value without parts, or the opening of one whose first part comes next."""
        char = self._next()
        if char == "{":
            return self._begin_object()
        if char == "[":
            return self._begin_array()
        if char == '"':
            return self._string(), False
        if char in _WORDS:
            return self._word(*_WORDS[char]), False
        if char == "-" or char in _DIGITS:
            return self._number(), False
        raise self._refused("looking for beginning of value")

    def _begin_object(self) -> tuple[Value, bool]:
        made = Object([])
        self._push(made)
        if self._next() == "}":
            self._at += 1
            self._open.pop()
            return made, False
        self._key()
        return None, True

    def _begin_array(self) -> tuple[Value, bool]:
        made: list[Value] = []
        self._push(made)
        if self._next() == "]":
            self._at += 1
            self._open.pop()
            return made, False
        return None, True

    def _push(self, made: list[Value] | Object) -> None:
        if len(self._open) == MAX_DEPTH:
            raise self._refused("exceeded max depth")
        self._open.append(made)
        self._at += 1

    def _put(self, value: Value) -> Value:
        """Put a value into what is open; returns that when it is closed by this, else None: a further part is due."""
        inside = self._open[-1]
        if isinstance(inside, Object):
            inside.members.append((self._keys.pop(), value))
            end, where = "}", "after object key:value pair"
        else:
            inside.append(value)
            end, where = "]", "after array element"
        char = self._next()
        if char not in {",", end}:
            raise self._refused(where)
        self._at += 1
        if char == end:
            return self._open.pop()
        if isinstance(inside, Object):
            self._key()
        return None

    def _key(self) -> None:
        if self._next() != '"':
            raise self._refused("looking for beginning of object key string")
        self._keys.append(self._string())
        if self._next() != ":":
            raise self._refused("after object key")
        self._at += 1

    def _next(self) -> str:
        """The next character that is no space, not yet taken."""
        spaces = _SPACE.match(self._text, self._at)
        self._at = spaces.end() if spaces else self._at
        if self._at == len(self._text):
            raise self._ended()
        return self._text[self._at]

    def _string(self) -> str:
        match = _STRING.match(self._text, self._at)
        start, self._at = self._at + 1, match.end() if match else self._at
        char = self._peek()
        if char == '"':
            self._at += 1
            return _unquoted(self._text[start : self._at - 1])
        if char != "\\":
            raise self._refused("in string literal")
        self._at += 1
        if self._peek() != "u":
            raise self._refused("in string escape code")
        self._at += 1
        while self._peek() in _HEX:
            self._at += 1
        raise self._refused("in \\u hexadecimal character escape")

    def _word(self, word: str, value: bool | None) -> bool | None:
        for char in word:
            if self._peek() != char:
                raise self._refused(f"in literal {word} (expecting {_quoted(char)})")
            self._at += 1
        return value

    def _number(self) -> Number:
        match = _NUMBER.match(self._text, self._at)
        if match is None:
            self._at += 1
            self._peek()
            raise self._refused("in numeric literal")
        self._at = match.end()
        rest = self._text[self._at : self._at + 1]
        literal = match.group()
        if rest == "." and not set(literal) & set(".eE"):
            self._at += 1
            self._peek()
            raise self._refused("after decimal point in numeric literal")
        if rest in {"e", "E"} and not set(literal) & set("eE"):
            self._at += 1
            if self._peek() in "+-":
                self._at += 1
                self._peek()
            raise self._refused("in exponent of numeric literal")
        return Number(literal)

    def _peek(self) -> str:
        if self._at == len(self._text):
            raise self._ended()
        return self._text[self._at]

    def _ended(self) -> GoJsonError:
        return GoJsonError("EOF" if not self._text.strip(" \t\r\n") else "unexpected EOF")

    def _refused(self, where: str) -> GoJsonError:
        return GoJsonError(f"invalid character {_quoted(self._text[self._at])} {where}")


def _unquoted(raw: str) -> str:
    """What stands between the quotes: each byte that is not UTF-8, and each lone surrogate, becomes U+FFFD."""
    text = raw.encode("latin-1").decode("utf-8", "surrogateescape")
    text = _LONE.sub("\ufffd", text)
    if "\\" not in text:
        return text
    text = _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else _ESCAPED.get(found[2], found[2]), text)
    text = _PAIR.sub(lambda pair: chr(0x10000 + ((ord(pair[1]) - 0xD800) << 10) + ord(pair[2]) - 0xDC00), text)
    return _LONE.sub("\ufffd", text)


def _quoted(char: str) -> str:
    """A byte as Go's messages name it."""
    named = {"'": "\\'", '"': '"', "\\": "\\\\", "\a": "\\a", "\v": "\\v", **_SPELLED}.get(char)
    if named is None:
        named = char if char.isprintable() else (f"\\x{ord(char):02x}" if ord(char) < 0x80 else f"\\u{ord(char):04x}")
    return f"'{named}'"


_SPELLED = {char: f"\\{letter}" for letter, char in _ESCAPED.items()}
