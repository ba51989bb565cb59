"""LA protocol v2 as a pure core: messages and `now` in; messages, events and the next timer out.

Nothing here does I/O, reads a clock or draws a number: a shell moves the bytes, and hands in ids and nonces.

    wire         text to JSON object, strictly
    contract     the schemas, limits and types of a contract folder
    errors       the wire codes as data
    frames       the envelope, and building frames
    signing      VH-AGENT-SIG-V1
    handshake    the states of a connection as one table
    reliability  numbering, acks, retransmission, duplicates
    chunks       the rules of content.response series
    session      what outlives a connection
    checks       the checks of a frame, and their order
    connection   acks, refusals, liveness: what both sides share
    agent_side, gateway_side   a connection as each side sees it
"""
