from __future__ import annotations

from lab.partner.model.parts import Bell


def test_a_bell_calls_each_listener_in_order_until_it_stops() -> None:
    bell, heard = Bell(), []
    stop = bell.listen(lambda: heard.append("a"))
    bell.listen(lambda: heard.append("b"))
    bell.ring()
    stop()
    stop()
    bell.ring()
    assert heard == ["a", "b", "b"]


def test_a_listener_may_stop_while_the_bell_rings() -> None:
    bell, heard = Bell(), []

    def once() -> None:
        heard.append(1)
        stop()

    stop = bell.listen(once)
    bell.ring()
    bell.ring()
    assert heard == [1]
