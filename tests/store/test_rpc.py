"""Reading and writing messages; what is none is tried over the socket, in test_server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lab.store.headers import Code
from lab.store.rpc import MAX_DEPTH, Call, Notice, Returned, RpcFault, encode, read_untrusted


def test_three_kinds_of_message() -> None:
    assert read_untrusted(b'{"jsonrpc":"2.0","id":"a","method":"m"}') == Call("a", "m", {})
    assert read_untrusted(b'{"jsonrpc":"2.0","method":"m","params":{"x":1}}') == Notice("m", {"x": 1})
    assert read_untrusted(b'{"jsonrpc":"2.0","id":1,"result":{}}') == Returned()
    assert read_untrusted(b'{"jsonrpc":"2.0","id":1,"error":{}}') == Returned()


def test_what_a_call_carries() -> None:
    call = Call(1, "tools/call", {"name": "t", "_meta": {"m": 1}})
    assert (call.tool, call.meta) == ("t", {"m": 1})
    assert (Call(1, "tools/list", {"name": "t"}).tool, Call(1, "x", {"_meta": 5}).meta) == (None, {})


@pytest.mark.parametrize("id_", ['"' + "x" * 129 + '"', "1" * 129])
def test_an_id_is_short(id_: str) -> None:
    with pytest.raises(RpcFault) as caught:
        read_untrusted(f'{{"jsonrpc":"2.0","id":{id_},"method":"m"}}'.encode())
    assert caught.value.code is Code.INVALID_REQUEST


def test_half_a_pair_of_surrogates_stays_what_it_was() -> None:
    message = {"id": "\ud800", "text": "é\u2028"}
    raw = encode(message)
    assert json.loads(raw.decode("utf-8")) == message
    assert "é".encode() in raw
    assert b"\n" not in raw


@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ('{"a":', "}")])
def test_a_message_is_nested_so_deep_and_no_deeper(opened: str, closed: str) -> None:
    def read(depth: int) -> Any:
        value = opened * depth + "1" + closed * depth
        return read_untrusted(f'{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"x":{value}}}}}'.encode())

    # The message and its params are two.
    assert isinstance(read(MAX_DEPTH - 3), Call)
    with pytest.raises(RpcFault, match="deep") as caught:
        read(MAX_DEPTH - 2)
    assert caught.value.code is Code.PARSE
