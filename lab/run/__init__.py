"""A run: a scenario carried out against a world of doubles and SUTs, and judged from its journal.

identity      the ids, keys, tokens and canaries of one run
agents        the three ways to have a Local Agent: reference, a program, attached
world         every participant of a scenario, started and wired through links
link_faults   carrying out link faults, each ended at its own time
services      service faults on agent2 doubles
whereabouts   which of several gateway instances an agent is at
ending        ending what was started, all of it
conditions    what a step can wait for, as the doubles see it
driver        what the gateway's caller does: jobs, streams, conversations
steps         carrying out each kind of step
sockets       what an agent's sockets came to
figures       numbers of a run, from its journal
expectations  what the scenario expects, held against what the driver has
defects       errors that nobody raised on purpose, made part of the run
interrupts    Ctrl-C, as a clean stop
folder        the folder that a run leaves
verdict       everything together: what held, what broke, what is unknown
runner        one run from its folder to its verdict
"""
