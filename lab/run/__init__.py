"""A run: a scenario carried out against a world of doubles and SUTs, and judged from its journal.

identity      the ids, keys, tokens and canaries of one run
agents        the three ways to have a Local Agent: reference, a program, attached
world         every participant of a scenario, started and wired through links
conditions    what a step can wait for, as the doubles see it
driver        what the gateway's caller does: jobs, streams, conversations
steps         carrying out each kind of step
figures       numbers of a run, from its journal
expectations  what the scenario expects, held against what the driver has
defects       errors that nobody raised on purpose, made part of the run
interrupts    Ctrl-C, as a clean stop
verdict       everything together: what held, what broke, what is unknown
runner        one run from its folder to its verdict
"""
