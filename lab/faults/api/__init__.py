"""Toxiproxy's HTTP API over the engine of this package: statuses, bodies and habits are those of server 2.12.0.

What differs, on purpose, stands in docs/faults.md, "What differs from the Go server".
"""
