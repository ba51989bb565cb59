"""The store double: an MCP server over Streamable HTTP, of the wire of 2025 (sessions) and of 2026 (stateless).

Does: list its tools to whoever bears the static credential, serve catalogue and orders to calls that bring a grant
that is good for it, misbehave as it is told, journal every request. Does not: prompts, resources, sampling, tasks, or
requests of its own to the client. Never: changes anything, writes down a grant, a credential or what a tool said.
"""
