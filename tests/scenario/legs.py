"""The scenarios that come with the lab, by the leg that they are of."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from lab.scenario.loader import find_scenarios
from lab.scenario.partner_names import is_partner_leg
from lab.scenario.yaml_places import parse_untrusted
from tests.command_line import ROOT

FOLDER: Final = ROOT / "scenarios"


def is_of_the_partner_leg(file: Path) -> bool:
    """Whether a scenario's file names a participant of the partner leg."""
    tree, _ = parse_untrusted(file.read_text("utf-8"), str(file))
    return is_partner_leg(tree)


ALL_FILES: Final = tuple(find_scenarios([FOLDER]))
PARTNER_FILES: Final = tuple(file for file in ALL_FILES if is_of_the_partner_leg(file))
CHAT_FILES: Final = tuple(file for file in ALL_FILES if file not in PARTNER_FILES)
