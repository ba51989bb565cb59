"""The one record of a run: typed events, append-only, in causal order; all that people see is a view of it."""
