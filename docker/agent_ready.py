"""Ends well when the gateway double whose control API is on the given port has a session with its Local Agent.

LAB_CONTROL_TOKEN is the key to ask it.
"""

from __future__ import annotations

import json
import os
import sys
from http.client import HTTPConnection

connection = HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=2)
connection.request("GET", "/control/sessions", headers={"Authorization": f"Bearer {os.environ['LAB_CONTROL_TOKEN']}"})
sessions = json.load(connection.getresponse())["sessions"]
sys.exit(not all(session["ready"] for session in sessions))
