import logging

import pytest

from lab.localagent.uplink import Notes
from tests.localagent.doubles import JOB, TS, WORKSPACE, RecordingUplink, context


@pytest.mark.req("LA-035")
@pytest.mark.parametrize("audit", [True, False])
def test_a_note_holds_a_short_id_and_codes(audit: bool, caplog: pytest.LogCaptureFixture) -> None:
    uplink = RecordingUplink()
    with caplog.at_level(logging.INFO, "lab.localagent"):
        Notes(context(), uplink, audit=audit).note("agent2_unavailable", WORKSPACE, JOB, mode="attach")
    assert caplog.messages == ["agent2_unavailable job=33333333 mode=attach"]
    note = {"code": "agent2_unavailable", "at": TS, "jobId": JOB, "mode": "attach"}
    assert uplink.sent == ([("audit.event", note, WORKSPACE)] if audit else [])
