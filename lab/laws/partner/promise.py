"""How a law of the partner leg is made: a sentence and a judge of the partner's view."""

from __future__ import annotations

from collections.abc import Callable

from lab.laws.law import Judgement, Law, Status, Tally
from lab.laws.partner.view import PartnerView
from lab.laws.view import JournalView

NOTHING = Judgement(Status.NOTHING, 0)


class Bench(Tally):
    """A tally that knows who plays the party that it judges."""

    def __init__(self, law: str, party: str, who: str) -> None:
        super().__init__(law, party)
        self._who = who

    def odd(self, seen: str, due: str, *entries: int) -> None:
        """One case was not as it was due."""
        self.broken(self._who, seen, due, entries)

    def case(self, fine: bool, seen: str, due: str, *entries: int) -> None:
        """One case that could be told."""
        if fine:
            self.held()
        else:
            self.odd(seen, due, *entries)


def promise(
    law: str,
    sentence: str,
    party: str,
    requirements: tuple[str, ...],
    judge: Callable[[PartnerView, Bench], None],
) -> Law:
    """A law whose judge is asked only where a journal tells of the partner leg."""

    def judged(view: JournalView) -> Judgement:
        partner = view.partner
        if not partner.there:
            return NOTHING
        bench = Bench(law, party, partner.name(party))
        judge(partner, bench)
        return bench.judgement()

    return Law(law, sentence, party, requirements, judged)
