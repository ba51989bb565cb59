"""A follower over httpx-sse, which leaves it to its user to come back after a cut."""

from __future__ import annotations

import json
import sys

import httpx
from httpx_sse import ServerSentEvent, connect_sse

MOST_CONNECTIONS = 5


def main() -> None:
    asked = json.load(sys.stdin)
    heard: list[ServerSentEvent] = []
    with httpx.Client(headers=asked["headers"], timeout=20.0) as client:
        for _ in range(MOST_CONNECTIONS):
            headers = {"Last-Event-ID": heard[-1].id} if heard else {}
            try:
                with connect_sse(client, "GET", asked["url"], headers=headers) as source:
                    source.response.raise_for_status()
                    heard.extend(source.iter_sse())
            except httpx.TransportError:
                continue
            break
    told = [{"id": event.id, "name": event.event, "data": json.loads(event.data)} for event in heard]
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
