"""The page of all laws, `docs/laws.md`; `python -m lab.laws.page` writes it anew."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab.laws import ALL_LAWS, Law
from lab.laws.partner.words import ISSUER, PARTNER_API, PARTNER_CLIENT, STORE
from lab.laws.seen import GATEWAY, LOCAL_AGENT

PAGE = Path("docs/laws.md")
"""Where the page lies in the project."""

COMMAND = "python -m lab.laws.page"
"""What writes the page anew, run in the project's folder."""

_HEAD = f"""# The laws

Every law is judged in every run, unasked. `lab explain LAW` tells one with its requirements in full. A law that had
nothing to judge says so; what a fault breaks by order is excused. This page is made by `{COMMAND}`.
"""

_PARTIES = {
    LOCAL_AGENT: "Of a local agent",
    GATEWAY: "Of a gateway",
    PARTNER_API: "Of a partner API",
    PARTNER_CLIENT: "Of the driver that calls it",
    STORE: "Of the store",
    ISSUER: "Of the issuer of grants",
}


def laws_page(laws: Sequence[Law] = ALL_LAWS) -> str:
    """The page's text: each law with its sentence and requirements, by the party that it judges."""
    parts = [_HEAD]
    for party, title in _PARTIES.items():
        rows = [_row(law) for law in laws if law.party == party]
        parts.append("\n".join((f"## {title}\n", "| law | promise | requirements |", "|---|---|---|", *rows)) + "\n")
    return "\n".join(parts)


def _row(law: Law) -> str:
    return f"| `{law.id}` | {law.sentence} | {' '.join(sorted(law.requirements))} |"


if __name__ == "__main__":
    PAGE.write_text(laws_page(), "utf-8")
