"""The reference Local Agent: the lab's own model of the program between a gateway and agent2.

Does: takes jobs one at a time and runs them on a local agent2; keeps chats in a store of its own and answers
`job.stream`, `chat.session` and `file.list` from this machine; checks approval tokens; counts what it dropped.

Does not: start or supervise agent2 (it attaches to one that runs), offer agent2 a bridge to a workspace or a
model, resolve inputs that are given by ref, run detectors, or serve `quality`.

Never will: send a prompt, an answer, a path or a token anywhere but where the protocol has a field for it;
shorten a chat's prompt; run a job twice; speak for the real Local Agent where the two differ.

`work.AgentWork` is all that the socket shell needs to know; everything here runs on one event loop without
threads, and takes time, ids and cursors from the run's context.
"""
