"""The agent2 double: a pure engine that runs scripts, and the HTTP shell `/local/v1` around it.

    marks     a YAML text as nodes that know their place
    beats     what a script is made of
    steps     the steps of a script file, read into beats
    script    a script and its file
    defaults  the script of a kind for which none is given
    feed      what a job produced, and a reader's position in it
    job       one job: its states as a table, and the script that moves it
    engine    requests and `now` in; answers, journal events and the next timer out
    server    the socket shell

It admits one job at a time, runs its script, reports, waits for approvals, obeys or ignores a cancel, and replays
both streams to every reader. It does not look at a workspace or call a model, and never changes a file.
"""
