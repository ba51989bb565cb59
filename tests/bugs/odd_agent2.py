"""Ways in which the agent2 double is legal but rare, or wrong: what its scripts cannot order.

A scenario names one as a tag. agent2 is judged by no law, so nothing has to be excused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from lab.agent2.beats import EmitLine, LineType, StreamName
from lab.agent2.engine import Answer, Engine
from lab.agent2.server import Agent2Server, _Delivery
from tests.bugs.plants import Function, Patch
from tests.bugs.provocations import provocation

STRANGER: Final = "77e0c1f2-5b0a-4f0e-9a3d-2c6b8e1d4f05"

Bytes = Callable[[Any], bytes]


def _encoding(patch: Patch, stream: StreamName, make_encode: Callable[[Bytes], Bytes]) -> None:
    """Let `make_encode` change how an item of a stream is written."""

    def make(original: Function) -> Function:
        async def serve(self: Any, request: Any, name: StreamName, reader: Any, encode: Bytes) -> Any:
            return await original(self, request, name, reader, make_encode(encode) if name is stream else encode)

        return serve

    patch.wrap(Agent2Server, "_serve", make)


def _lines(patch: Patch, alter: Callable[[str], str]) -> None:
    """Let `alter` change each text line."""

    def make(original: Function) -> Function:
        def encoded(self: EmitLine) -> str:
            line: str = original(self)
            return alter(line) if self.type is LineType.TEXT else line

        return encoded

    patch.wrap(EmitLine, "encoded", make)


@provocation("agent2-line-ends-apart")
def line_ends_apart(patch: Patch) -> None:
    """CR and LF of a content line's end arrive in two reads."""

    async def run(self: Any, response: Any) -> None:
        while True:
            self.more.clear()
            for item in self._reader.take():
                text = self._encode(item).replace(b"\n", b"\r\n")
                head, cr, tail = text.partition(b"\r") if isinstance(item, str) else (text, b"", b"")
                for part in (head + cr, tail):
                    if part:
                        await response.write(part)
                        await asyncio.sleep(0.02)
                self.sent += 1
            if self._reader.ended or self._reader.broken:
                return
            await self.more.wait()

    patch.set(_Delivery, "run", run)


@provocation("agent2-blank-ends")
def blank_ends(patch: Patch) -> None:
    """Lines begin and end with blanks."""
    _lines(patch, lambda line: f"  {line}  ")


@provocation("agent2-two-data-lines")
def two_data_lines(patch: Patch) -> None:
    """A line has a line break, so its block has two data lines."""
    _lines(patch, lambda line: line.replace(',"text"', ',\n"text"'))

    def make_encode(_encode: Bytes) -> Bytes:
        return lambda line: "".join(f"data: {part}\n" for part in line.split("\n")).encode() + b"\n"

    _encoding(patch, StreamName.STREAM, make_encode)


@provocation("agent2-named-lines")
def named_lines(patch: Patch) -> None:
    """Content lines come under an event name."""
    _encoding(patch, StreamName.STREAM, lambda encode: lambda line: b"event: line\n" + encode(line))


@provocation("agent2-half-line")
def half_line(patch: Patch) -> None:
    """A content stream that breaks off does so within a line."""

    async def behind(self: Any, response: Any) -> None:
        if self._reader.broken and self._reader.position < len(self._reader._feed.items):
            item = self._reader._feed.items[self._reader.position]
            if isinstance(item, str):
                await response.write(self._encode(item)[:30])

    def make(original: Function) -> Function:
        async def run(self: Any, response: Any) -> None:
            await original(self, response)
            await behind(self, response)

        return run

    patch.wrap(_Delivery, "run", make)


@provocation("agent2-foreign-frame")
def foreign_frame(patch: Patch) -> None:
    """A frame of another job stands between those of a job."""

    def make_encode(encode: Bytes) -> Bytes:
        def both(frame: Any) -> bytes:
            text = encode(frame)
            if frame.seq != 2:
                return text
            foreign = text.replace(frame.job_id.encode(), STRANGER.encode())
            return foreign.replace(b'"iteration":1', b'"iteration":77') + text

        return both

    _encoding(patch, StreamName.EVENTS, make_encode)


@provocation("agent2-bad-frame")
def bad_frame(patch: Patch) -> None:
    """A frame that is no JSON stands between the others."""

    def make_encode(encode: Bytes) -> Bytes:
        return lambda frame: (b"event: frame\ndata: {half\n\n" if frame.seq == 2 else b"") + encode(frame)

    _encoding(patch, StreamName.EVENTS, make_encode)


@provocation("agent2-lines-after-result")
def lines_after_result(patch: Patch) -> None:
    """The content stream runs half a second behind, so it ends after the result."""

    def make(original: Function) -> Function:
        async def serve(self: Any, request: Any, name: StreamName, *args: Any) -> Any:
            if name is StreamName.STREAM:
                await asyncio.sleep(0.5)
            return await original(self, request, name, *args)

        return serve

    patch.wrap(Agent2Server, "_serve", make)


@provocation("agent2-chat-vanishes")
def chat_vanishes(patch: Patch) -> None:
    """Only the first health lists chat."""
    asked: list[int] = []

    def make(original: Function) -> Function:
        def health(self: Engine) -> Answer:
            asked.append(1)
            answer: Answer = original(self)
            kinds = ["fix", "implement"] if len(asked) > 1 else answer.body["kinds"]
            return Answer(answer.status, {**answer.body, "kinds": kinds})

        return health

    patch.wrap(Engine, "health", make)
