"""The virtual clock: the lab's own shells on a deterministic event loop with a network in memory.

asyncio's selector loop and its transports stay as they are; what is beneath them is replaced: the clock, the
selector and the sockets. What code that runs here must not do stands in docs/virtual-clock.md.
"""
