"""What the proxies carried, for Prometheus, under the names that Toxiproxy uses."""

from __future__ import annotations

from collections.abc import Iterable

from lab.faults.proxy import Proxy
from lab.faults.specs import STREAMS

RECEIVED = "toxiproxy_proxy_received_bytes_total"
SENT = "toxiproxy_proxy_sent_bytes_total"


def metrics_text(proxies: Iterable[Proxy]) -> str:
    """Bytes received and sent by every proxy, each way, in the text format 0.0.4."""
    received, sent = [], []
    for proxy in sorted(proxies, key=lambda proxy: proxy.name):
        for stream in sorted(STREAMS):
            labels = _labels(direction=stream, listener=proxy.listen, proxy=proxy.name, upstream=proxy.upstream)
            traffic = proxy.traffic(stream)
            received.append(f"{RECEIVED}{labels} {traffic.received}\n")
            sent.append(f"{SENT}{labels} {traffic.sent}\n")
    return _family(RECEIVED, "Bytes read from a source.", received) + _family(SENT, "Bytes sent on.", sent)


def _family(name: str, help_text: str, rows: list[str]) -> str:
    return f"# HELP {name} {help_text}\n# TYPE {name} counter\n" + "".join(rows) if rows else ""


def _labels(**values: str) -> str:
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in values.items())
    return f"{{{pairs}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
