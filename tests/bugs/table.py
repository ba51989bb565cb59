"""The table of planted slips: `python -m tests.bugs.table --write` renders it into docs/planted-bugs.md.

`python -m tests.bugs.table --run [SLIP…]` plants the slips named, or all, and tells what caught each.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import yaml

from lab.laws.law import Law
from tests.bugs.plants import Plant, all_plants
from tests.bugs.runs import LAWS, SUT_PARTY, Told, run
from tests.bugs.shipped import alone, rarest, recorded

CATALOGUE: Final = Path(__file__).with_name("catalogue.yaml")
TABLE: Final = Path(__file__).parents[2] / "docs" / "planted-bugs.md"

_HEAD: Final = """\
# Planted bugs

`tests/bugs/catalogue.yaml` lists slips of a Local Agent and of a gateway, written apart from the laws. Those below are
planted in the reference agent or in the gateway double, one at a time; the scenario is run, and the law is the one
that catches the slip first. It is the right one when it cites a requirement that the slip breaks, or when its sentence
is the promise that the slip breaks.

`python -m tests.bugs.table --write` writes this page; `python -m tests.bugs.table --run SLIP` plants one and tells what
caught it. `make test-long` plants them all.
"""


@dataclass(frozen=True)
class Slip:
    """An entry of the catalogue, as far as the table needs it."""

    id: str
    party: str
    slip: str
    breaks: tuple[str, ...]


@cache
def catalogue() -> Mapping[str, Slip]:
    """The slips by id, in the catalogue's order."""
    entries = yaml.safe_load(CATALOGUE.read_text("utf-8"))
    slips = [Slip(one["id"], one["party"], one["slip"], tuple(one["breaks"])) for one in entries]
    return {slip.id: slip for slip in slips}


def is_right(plant: Plant, slip: Slip, law: Law) -> bool:
    """Whether the law that caught the slip is about what the slip breaks."""
    return plant.promise or not set(law.requirements).isdisjoint(slip.breaks)


def render(plants: Mapping[str, Plant], slips: Mapping[str, Slip], laws: Mapping[str, Law]) -> str:
    """The page."""
    rows = [(slips[plant.slip], plant) for plant in plants.values()]
    caught = [(slip, plant) for slip, plant in rows if plant.law is not None]
    missed = [(slip, plant) for slip, plant in rows if plant.law is None]
    left = [slip for slip in slips.values() if slip.id not in plants]
    firsts = {plant.law for _, plant in caught}
    idle = [law for law in laws if law not in firsts]
    lines = [_HEAD]
    lines.append(f"{len(slips)} slips are listed; {len(rows)} are planted, {len(caught)} of them caught.")
    lines += _caught(caught, laws)
    lines += _section("Not caught yet", ("slip", "what it does", "scenario", "what a law would have to see"))
    lines += [_row(slip.id, slip.slip, plant.scenario, plant.why) for slip, plant in missed]
    lines += ["", "## Laws that are first to catch none of these", "", ", ".join(f"`{law}`" for law in idle) or "none"]
    lines += _section("Not planted yet", ("slip", "what it does"))
    lines += [_row(slip.id, slip.slip) for slip in left]
    lines += _shipped()
    lines += _partner_leg()
    return "\n".join(lines) + "\n"


def _caught(rows: Iterable[tuple[Slip, Plant]], laws: Mapping[str, Law]) -> list[str]:
    lines = _section("Caught", ("slip", "what it does", "scenario", "law", "right"))
    for slip, plant in rows:
        law = laws[plant.law or ""]
        right = "yes" if is_right(plant, slip, law) else f"no: it cites none of {', '.join(slip.breaks)}"
        if plant.blamed:
            right += f"; {', '.join(f'`{one}`' for one in plant.blamed)} may blame the SUT, wrongly"
        lines.append(_row(slip.id, slip.slip, plant.scenario, f"`{law.id}`", right))
    return lines


def _section(title: str, columns: Sequence[str]) -> list[str]:
    return ["", f"## {title}", "", _row(*columns), _row(*("---" for _ in columns))]


def _shipped() -> list[str]:
    """What the scenarios of `scenarios/` catch of them, on their own."""
    record = recorded()
    only = alone(record)
    lines = _section("What each shipped scenario catches", ("scenario", "slips", "that no other of them catches"))
    for name, slips in record.items():
        told = ", ".join(only[name]) or f"none; fewest others catch {rarest(record, name)}"
        lines.append(_row(name, str(len(slips)), told))
    return lines


def _partner_leg() -> list[str]:
    """The slips of the partner API and of its driver."""
    # The partner leg's catalogue is made of this module's slips.
    from tests.bugs.partner.catalogue import catalogue as partner_slips
    from tests.bugs.partner.left import NOT_PLANTED
    from tests.bugs.partner.plants import all_plants as partner_plants
    from tests.bugs.partner.runs import LAWS as PARTNER

    slips, rows = partner_slips(), partner_plants()
    caught = [(slips[plant.slip], plant) for plant in rows.values() if plant.law is not None]
    missed = [(slips[plant.slip], plant) for plant in rows.values() if plant.law is None]
    parties = ("partner_api", "partner_client")
    idle = [law.id for law in PARTNER.values() if law.party in parties and law.id not in {one.law for _, one in caught}]
    lines = ["", "# The partner leg", ""]
    lines.append("`tests/bugs/partner/catalogue.yaml` lists slips of a partner API and of the driver that calls it.")
    lines.append(f"{len(slips)} are listed; {len(rows)} are planted, {len(caught)} of them caught.")
    lines += _caught(caught, PARTNER)
    lines += _section("Not caught yet", ("slip", "what it does", "scenario", "what a law would have to see"))
    lines += [_row(slip.id, slip.slip, plant.scenario, plant.why) for slip, plant in missed]
    title = "## Laws of the partner API and its driver that are first to catch none of these"
    lines += ["", title, "", ", ".join(f"`{law}`" for law in idle) or "none"]
    lines += _section("Not planted", ("slip", "what it does", "why"))
    return lines + [_row(name, slips[name].slip, why) for name, why in NOT_PLANTED.items()]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def main(arguments: Sequence[str]) -> int:
    """The command; its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.bugs.table", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {TABLE.name}")
    parser.add_argument("--run", nargs="*", metavar="SLIP", help="plant these slips, or all, and tell what caught each")
    chosen = parser.parse_args(arguments)
    plants = all_plants()
    if chosen.write:
        TABLE.write_text(render(plants, catalogue(), LAWS), "utf-8")
    odd = 0
    unknown = [name for name in chosen.run or () if name not in plants]
    if unknown:
        parser.error(f"no slip `{unknown[0]}` is planted; {TABLE.name} lists those that are")
    if chosen.run is not None:
        for name in chosen.run or plants:
            odd += not _tell(plants[name])
        print(f"{odd} not as registered")
    return 1 if odd else 0


def mismatches(plant: Plant, party: str, told: Told) -> list[str]:
    """In what a run with the slip is not as the slip was registered."""
    first = told.first(party)
    found = []
    if not told.reached:
        found.append("the planted code was never reached")
    if plant.law not in (first or (None,)):
        found.append(f"first caught by {' and '.join(first) or 'no law'}, {plant.law} was registered")
    # What a double does after the agent broke a law is the agent's doing; not so the reverse.
    wrongly = [one for one in told.laws(SUT_PARTY) if party != SUT_PARTY and one not in plant.blamed]
    if wrongly:
        found.append(f"the agent is blamed by {', '.join(wrongly)}")
    due = 1 if party == SUT_PARTY else 3
    if first and told.exit_status != due:
        found.append(f"exit status {told.exit_status}, {due} was due")
    return found


def _tell(plant: Plant) -> bool:
    """Plant one slip and print what came of it; whether that is what its registration says."""
    slip = catalogue()[plant.slip]
    with tempfile.TemporaryDirectory() as out:
        told = run(plant.scenario, Path(out), plant)
    first = told.first(slip.party)
    fits = not mismatches(plant, slip.party, told)
    wrong_law = plant.law is not None and not is_right(plant, slip, LAWS[plant.law])
    right = f" (right: {[law for law in first if is_right(plant, slip, LAWS[law])]})" if wrong_law else ""
    print(f"{'ok ' if fits else 'ODD'} {plant.slip}: {' '.join(first) or None}, registered {plant.law}{right}")
    if not fits or wrong_law:
        print(told.words())
    return fits


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
