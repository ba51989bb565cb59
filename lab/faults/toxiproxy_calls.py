"""How the Toxiproxy client's HTTP calls are made: with bounds, past no proxy on loopback, and never half heard.

The client calls `requests` without a limit, obeys HTTP_PROXY even towards this machine, and takes an answer of 500 for
a good one. So what it calls is put in place of its `requests`, for the whole process, as its server is.
"""

from __future__ import annotations

import io
import json
import time
from typing import Any

import requests
import urllib3

from lab.errors import EnvironmentFault
from lab.faults.address import is_loopback

CALL_SECONDS = 5.0
"""What a server may take to be connected to, to begin an answer, and to end it; it then hangs."""

MOST_BYTES = 8 * 1024 * 1024
"""What an answer may have: a list of all proxies, others' too, is far smaller."""

PIECE_BYTES = 64 * 1024

LONGEST_WORDS = 200
TOLD_BY_THE_CLIENT = (400, 404, 409)
"""Statuses that the client makes errors of."""


class ToxiproxyFault(EnvironmentFault):
    """The Toxiproxy server is not there, answers what it must not, or did not do what it was told."""


class ServerLost(ToxiproxyFault):
    """The Toxiproxy server is not there, or hangs: whatever it is asked next would fail too."""


class Calls:
    """What the client has for `requests`. Each call is a connection of its own, which leaves nothing open."""

    def __init__(self, host: str, port: int, seconds: float = CALL_SECONDS) -> None:
        self._server = f"{host}:{port}"
        self._loopback = is_loopback(host)
        self._seconds = seconds

    def get(self, url: str, **options: Any) -> requests.Response:
        """See `requests.get`."""
        return self._call("GET", url, options)

    def post(self, url: str, **options: Any) -> requests.Response:
        """See `requests.post`."""
        return self._call("POST", url, options)

    def delete(self, url: str, **options: Any) -> requests.Response:
        """See `requests.delete`."""
        return self._call("DELETE", url, options)

    def _call(self, method: str, url: str, options: dict[str, Any]) -> requests.Response:
        with requests.Session() as session:
            # What NO_PROXY would say, without a change of the environment that children inherit.
            session.trust_env = not self._loopback
            try:
                answer = session.request(
                    method, url, timeout=self._seconds, allow_redirects=False, stream=True, **options
                )
                answer.raw = io.BytesIO(self._body(answer.raw))
            except (requests.Timeout, urllib3.exceptions.ReadTimeoutError):
                raise ServerLost(
                    f"the Toxiproxy server at {self._server} hangs: it did not answer within {self._seconds:g} s. "
                    "Restart it, or leave --faults away for the embedded engine."
                ) from None
            except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
                raise ServerLost(
                    f"no Toxiproxy server answers at {self._server} ({type(error).__name__}). "
                    "Start one there, such as `lab serve faults`, or leave --faults away for the embedded engine."
                ) from None
        if not 200 <= answer.status_code < 300 and answer.status_code not in TOLD_BY_THE_CLIENT:
            raise self.odd(f"HTTP {answer.status_code}: {told(answer.content)}")
        return answer

    def _body(self, raw: Any) -> bytes:
        """The whole body, within its bounds."""
        pieces: list[bytes] = []
        left, end = MOST_BYTES, time.monotonic() + self._seconds
        while piece := raw.read1(PIECE_BYTES, decode_content=True):
            left -= len(piece)
            if left < 0:
                raise self.odd(f"an answer of more than {MOST_BYTES // 1024**2} MiB")
            if time.monotonic() > end:
                raise requests.Timeout
            pieces.append(piece)
        return b"".join(pieces)

    def odd(self, seen: str) -> ToxiproxyFault:
        """The error for an answer that is none of a Toxiproxy server that is well."""
        return ToxiproxyFault(
            f"the server at {self._server} answers what a Toxiproxy server does not, or failed: {seen}. "
            "Look at its log, and whether --faults names the right port."
        )


def told(content: object) -> str:
    """The words of an error's body, made safe to show: the server may be any program."""
    text = content.decode("utf-8", "replace") if isinstance(content, bytes) else str(content)
    try:
        body = json.loads(text)
        text = str(body["error"]) if isinstance(body, dict) and "error" in body else text
    except (ValueError, RecursionError):
        pass
    line = " ".join(text.split())[:LONGEST_WORDS]
    return "".join(character if character.isprintable() else "?" for character in line) or "no words"
