"""The lab: test doubles, scenarios, faults and laws around a Local Agent and a partner chat API."""

__version__ = "0.1.0"
