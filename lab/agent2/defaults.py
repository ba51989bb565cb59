"""The script of a kind for which none is given."""

from __future__ import annotations

from types import MappingProxyType

from lab.agent2.script import Script, parse_script

_CHAT = """\
script: default-chat
about: A short answer
steps:
  - event: { phase: context }
  - text: "I looked at the question. "
  - text: "Nothing had to be changed."
  - answer: "I looked at the question. Nothing had to be changed."
  - done
  - result: { outcome: no_change, filesChangedCount: 0 }
"""

_WORK = """\
script: default-work
about: One phase and no change
steps:
  - event: { phase: context }
  - text: "Nothing had to be changed."
  - done
  - result: { outcome: no_change, filesChangedCount: 0 }
"""

DEFAULTS = MappingProxyType({"chat": _CHAT, "fix": _WORK, "implement": _WORK})


def default_script(kind: str) -> Script:
    """The built-in script of `kind`, one of the kinds agent2 serves; its sources read `built-in:LINE`."""
    return parse_script(DEFAULTS[kind], "built-in")
