"""Ends well when every URL of this machine answers GET with its status: STATUS URL [STATUS URL]…"""

from __future__ import annotations

import sys
from http.client import HTTPConnection
from urllib.parse import urlsplit

for due, url in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
    parts = urlsplit(url)
    connection = HTTPConnection(parts.netloc, timeout=2)
    connection.request("GET", parts.path)
    seen = connection.getresponse().status
    if seen != int(due):
        sys.exit(f"{url}: seen {seen}, due {due}")
