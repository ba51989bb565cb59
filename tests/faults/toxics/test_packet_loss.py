"""packet_loss: late, and never less."""

from __future__ import annotations

from itertools import pairwise

import pytest

from lab.draws import Draws
from lab.faults.flow import End
from lab.faults.toxics.packet_loss import KIND, LONGEST_TIMEOUT_SECONDS, PACKET_BYTES, PacketLoss, PacketLossAttributes
from lab.faults.toxics.stage import Given, Meter
from tests.faults.toxics.stages import Driven, near


class _Rolls(Draws):
    """Dice that fall as the test says: L is a lost packet, anything else a passed one."""

    def __init__(self, rolls: str) -> None:
        super().__init__(0, "", "")
        self._rolls = list(rolls)

    def fraction(self) -> float:
        return 0.0 if self._rolls and self._rolls.pop(0) == "L" else 0.999


def _driven(rolls: str) -> Driven:
    driven = Driven(KIND.name, loss_rate=0.5)
    driven.stage = PacketLoss(PacketLossAttributes(loss_rate=0.5), Given(_Rolls(rolls), Meter()))
    return driven


@pytest.mark.parametrize(
    ("rolls", "due"),
    [
        ("", [0.0]),
        ("L", [0.2]),
        ("LL", [0.6]),
        ("LLL", [1.4]),
    ],
)
def test_a_packet_is_sent_again_after_200_ms_doubling(rolls: str, due: list[float]) -> None:
    driven = _driven(rolls)
    driven.feed(b"x")
    driven.run_to(99)
    assert [when for when, _ in driven.log] == pytest.approx(due)


def test_what_is_behind_a_lost_packet_waits_for_it_and_the_time_begins_anew() -> None:
    driven = _driven("-L--L")
    driven.feed(b"a" * PACKET_BYTES + b"b" * PACKET_BYTES)
    driven.feed(b"c" * PACKET_BYTES, b"d", End.EOF, at=0.1)
    driven.run_to(99)
    assert driven.sizes == [
        (0.0, PACKET_BYTES),
        (near(0.2), 2 * PACKET_BYTES),
        (near(0.4), 1),
    ]
    assert driven.ends == [(near(0.4), End.EOF)]


def test_after_a_release_the_time_begins_anew() -> None:
    driven = _driven("LLL")
    driven.feed(b"a")
    driven.run_to(0.5)
    driven.release()
    driven.feed(b"b")
    assert driven.stage.due == near(0.7)


def test_the_doubling_has_an_end() -> None:
    driven = Driven(KIND.name, loss_rate=1.0)
    driven.feed(b"x")
    dues: list[float] = []
    while len(dues) < 20:
        assert driven.stage.due is not None
        dues.append(driven.stage.due)
        driven.run_to(driven.stage.due)
    assert driven.log == []
    assert dues[-1] - dues[-2] == pytest.approx(LONGEST_TIMEOUT_SECONDS)
    driven.update(loss_rate=0.0)
    driven.run_to(10_000)
    assert driven.bytes == b"x"


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_the_share_of_lost_packets_is_the_rate_whatever_the_correlation(correlation: float) -> None:
    stage = PacketLoss(PacketLossAttributes(0.2, correlation), Given(Draws(3, "test", "loss"), Meter()))
    lost = [stage._is_lost() for _ in range(20_000)]
    assert sum(lost) / len(lost) == pytest.approx(0.2, abs=0.02)
    after_lost = [second for first, second in pairwise(lost) if first]
    assert sum(after_lost) / len(after_lost) == pytest.approx(0.2 + 0.8 * correlation, abs=0.03)
