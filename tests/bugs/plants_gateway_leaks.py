"""Slips of a gateway by which content comes where it must not be: another member, its log, its records."""

from __future__ import annotations

import logging
from typing import Any

from lab.gateway.jobs import Order
from lab.gateway.relay import Answer, ContentRelay
from lab.gateway.server import GatewayServer
from lab.protocol.events import Output, Transmit
from tests.bugs.plants import Patch, plant
from tests.bugs.plants_gateway import Members
from tests.bugs.plants_gateway_calls import orders

BRANCH_CHARACTERS = 40

LAW = "gateway-content-stays-in-its-fields"


def _named_branch(order: Order, payload: Members) -> Members:
    words = "-".join(order.inputs[0][:BRANCH_CHARACTERS].split())
    return {**payload, "repoRef": {"repoId": "shop", "branch": f"fix/{words}"}}


@plant("gateway-branch-from-prompt", scenario="fix", law=LAW)
def branch_from_prompt(patch: Patch) -> None:
    """A branch tells what it is for."""
    orders(patch, _named_branch)


@plant("gateway-content-kept", scenario="chat", law=LAW)
def content_kept(patch: Patch) -> None:
    """What a request came to is written down."""

    def over(self: Any, answer: Answer) -> None:
        if answer.body:
            patch.slipped()
        self.__dict__.setdefault("_records", []).append(answer)

    patch.after(ContentRelay, "_over", over)


@plant("gateway-prompt-in-log", scenario="fix", law=LAW)
def prompt_in_log(patch: Patch) -> None:
    """Each frame goes to the log as well."""

    def write(_self: Any, _socket: object, output: Output) -> None:
        if isinstance(output, Transmit):
            patch.slipped()
            logging.getLogger("lab.gateway").info("sent %s", output.text)

    patch.after(GatewayServer, "_write", write)
