"""The gateway double: the control plane's side of LA protocol v2, as a real WebSocket server.

Does: the Bearer check at the upgrade, register/hello/ready, resume, numbering, acks and retransmission, signatures,
liveness, capability gates, jobs, the content relay with its time limits, and the long-poll loop over job.stream.
Does not: keep sessions beyond its process, relay to other instances, speak v1 commands, persist content.
Never will: be the real gateway; it is a model of the gateway's rules.

    jobs, relay, follow   pure: what a gateway knows of jobs, requests and a stream
    approvals             pure: the tokens of approval.decision
    core, news            pure: all connections of one gateway, and what it tells
    frame_faults          frame faults at the one place that sees frames
    witness               what its sockets carry and its core tells, written into the journal
    socket, server        the WebSocket shell: one socket, and all of them
    control               the HTTP API of a gateway that runs on its own
"""
