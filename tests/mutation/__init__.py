"""Mutants of lab/protocol, and what its tests do not notice: `make mutate`."""
