"""The driver: what a partner's server does, step by step, with things named by labels.

A step returns what came of it and raises nothing for what the API or the network does. It raises `NotThere` for a label
whose thing an earlier step did not get, and `UsageError` for what the driver was not told.
"""

from __future__ import annotations

from lab.partner.client.conversation_steps import ConversationSteps
from lab.partner.client.file_steps import FileSteps
from lab.partner.client.history_steps import HistorySteps
from lab.partner.client.member_steps import MemberSteps
from lab.partner.client.run_steps import RunSteps


class PartnerDriver(MemberSteps, ConversationSteps, FileSteps, RunSteps, HistorySteps):
    """Drives one API as one partner. Call `start` inside the loop, then steps, then `close`."""
