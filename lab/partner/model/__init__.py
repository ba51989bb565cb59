"""The model of the partner API: the lab's own server of the ten chat routes, and the SUT when nothing else is named.

Rules: pure functions of (parts, caller, request), over what is remembered
    words, refusals      the words of the wire, and each code with its status and text
    settings             what a model is set up with
    answers, shape       requests and answers without HTTP; strict reading of what a caller sent
    tables, state        what is remembered: SQLite, its grants sealed
    authority, receipts  keys, employees, what a run may still do; first uses of an Idempotency-Key
    parts                what every route is given
    memberships, conversations, context        routes 1 to 4
    messages, runs, history, attachments       routes 5 to 7, 9 and 10
    event_stream, sse, cursors                 route 8, and how streams and pages go on
    core                 the table of the operations and the order of the checks
Turns
    script, script_reading                     what the model behind a run "thinks"
    turns, turn, turn_record, turn_view        claims, courses, endings, and what history shows of them
    prompt, timings, usage, ledger             what the model is shown, where time and money went
    mcp_client, mcp_wire, store_calls          the way to the store
The lab's own
    keyring, seeding, legacy, removal, budget  secrets, provisioning, old data, erasing, spending
    controls, control_routes                   what the lab can do that no caller can
    fixture_output                             the private file for a driver
    bodies, server                             the HTTP shell
"""
