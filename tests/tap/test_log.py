"""What a log says, and which canaries stand in it."""

from __future__ import annotations

import logging

from lab.journal.events import Digest, digest
from lab.tap.canaries import CanarySearch
from lab.tap.log import LogTap

LOGGER = "lab.test.log"
CANARY = "k-4711-kk"


def test_each_line_and_what_stands_in_it() -> None:
    seen: list[tuple[Digest, tuple[str, ...]]] = []
    tap = LogTap(LOGGER, CanarySearch({"k1": CANARY}))
    tap.watch(lambda line, found: seen.append((line, found)))
    logging.getLogger(LOGGER).info("sent %s", "nothing")
    logging.getLogger(f"{LOGGER}.part").warning("sent %s", f'{{"a":"{CANARY}"}}')
    logging.getLogger(LOGGER).debug("nobody sees this %s", CANARY)
    assert tap.forget()
    assert seen == [(digest("log", "sent nothing"), ()), (digest("log", f'sent {{"a":"{CANARY}"}}'), ("k1",))]


def test_nothing_is_read_before_and_after() -> None:
    seen: list[Digest] = []
    logger = logging.getLogger(LOGGER)
    level, handlers = logger.level, list(logger.handlers)
    tap = LogTap(LOGGER, CanarySearch({}))
    assert not tap.forget()
    tap.watch(lambda line, _: seen.append(line))
    tap.watch(lambda line, _: seen.append(line))
    logger.info("once")
    assert tap.forget()
    assert not tap.forget()
    logger.warning("after")
    assert seen == [digest("log", "once")]
    assert (logger.level, logger.handlers) == (level, handlers)
