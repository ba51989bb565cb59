"""Witnesses: they judge raw bytes before redaction, with code of their own, and write the facts into the journal."""
