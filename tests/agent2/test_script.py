from __future__ import annotations

import re
from pathlib import Path

import pytest

from lab.agent2.beats import EmitFrame, End, FrameType, LineType, StreamName
from lab.agent2.script import BreakStream, load_script, parse_script
from lab.errors import ScenarioError
from lab.yaml_marks import MAX_BYTES
from tests.agent2.written import NO_CHANGE, lines_of, script_of, text_of

FIXTURES = Path(__file__).parents[2] / "fixtures" / "agent2"


def test_a_script_may_order_misbehaviour() -> None:
    orders = "http: { status: 503 }\nignore_cancel: true\nbreak_stream: { stream: events, after: 3, times: 2 }\n"
    script = script_of(NO_CHANGE, orders=orders)
    assert (script.http_status, script.ignore_cancel) == (503, True)
    assert script.break_stream == BreakStream(StreamName.EVENTS, 3, 2)


def test_without_orders_a_script_behaves() -> None:
    script = script_of(NO_CHANGE)
    assert (script.http_status, script.ignore_cancel, script.break_stream) == (None, False, None)


@pytest.mark.parametrize(
    ("orders", "path"),
    [
        ("http: { status: 200 }\n", "http.status"),
        ("http: 503\n", "http"),
        ("ignore_cancel: 1\n", "ignore_cancel"),
        ("break_stream: { stream: content, after: 1 }\n", "break_stream.stream"),
        ("break_stream: { stream: events }\n", "break_stream"),
        ("break_stream: { stream: events, after: 1, times: 0 }\n", "break_stream.times"),
        ("ignore_cancle: true\n", "ignore_cancle"),
    ],
)
def test_a_wrong_order_is_refused_at_its_path(orders: str, path: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        script_of(NO_CHANGE, orders=orders)
    assert (caught.value.path, caught.value.place.line) == (path, 3)


def test_a_script_needs_steps() -> None:
    with pytest.raises(ScenarioError, match="`steps` is missing"):
        parse_script("script: a\nabout: b\n", "test.yaml")


def test_sources_begin_at_the_fixtures_folder(tmp_path: Path) -> None:
    folder = tmp_path / "fixtures" / "agent2"
    folder.mkdir(parents=True)
    for path, shown in (
        (folder / "a.yaml", "fixtures/agent2/a.yaml"),
        (tmp_path / "b.yaml", (tmp_path / "b.yaml").as_posix()),
    ):
        path.write_text(text_of("- done", NO_CHANGE))
        assert lines_of(load_script(path))[0].source == f"{shown}:4"


@pytest.mark.parametrize(
    ("raw", "line", "words"),
    [
        (None, 1, "cannot be read"),
        (b"# a\n\xff", 2, "not UTF-8"),
        (b"#" * (MAX_BYTES + 1), 1, "too large"),
    ],
)
def test_a_file_that_cannot_be_a_script_is_refused(tmp_path: Path, raw: bytes | None, line: int, words: str) -> None:
    path = tmp_path / "a.yaml"
    if raw is not None:
        path.write_bytes(raw)
    with pytest.raises(ScenarioError, match=words) as caught:
        load_script(path)
    assert (caught.value.place.file, caught.value.place.line) == (str(path), line)


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.yaml")), ids=lambda path: path.name)
def test_every_fixture_says_each_line_once_and_names_its_source(path: Path) -> None:
    lines = lines_of(load_script(path))
    written = path.read_text().splitlines()
    assert len({line.encoded() for line in lines}) == len(lines)
    for line in lines:
        file, _, number = line.source.rpartition(":")
        assert file == f"fixtures/agent2/{path.name}"
        first = str(line.members[0][1]).split()[0] if line.members else "done"
        assert first in written[int(number) - 1]


def test_the_long_answer_has_200_lines_at_20_ms() -> None:
    script = load_script(FIXTURES / "long-answer.yaml")
    lines = lines_of(script)
    assert len(lines) == 200
    assert [line.type for line in lines].count(LineType.TEXT) == 194
    assert {beat.delay for beat in script.beats if beat.action in lines} == {0.02, 0.0}
    assert "9001" in lines[-2].encoded()
    assert [line.type for line in lines[-2:]] == [LineType.ANSWER, LineType.DONE]


def test_the_fix_opens_a_pull_request_of_three_files() -> None:
    script = load_script(FIXTURES / "fix.yaml")
    frames = [beat.action for beat in script.beats if isinstance(beat.action, EmitFrame)]
    changed = [frame.payload["filesChanged"] for frame in frames if frame.type is FrameType.JOB_EVENT]
    assert changed == [0, 0, 1, 2, 3, 3]
    end = script.beats[-1].action
    assert isinstance(end, End)
    assert end.result is not None
    assert end.result["outcome"] == "pr_opened"
    assert end.result["filesChangedCount"] == 3
    assert re.fullmatch("[0-9a-f]{40}", str(end.result["commitSha"]))
    assert re.fullmatch("[0-9a-f]{64}", str(end.result["diffSha256"]))


def test_the_leaky_answer_holds_no_secret_of_its_own() -> None:
    assert sorted(load_script(FIXTURES / "leaky-answer.yaml").canaries) == ["api_token", "password"]


def test_answers_are_told_by_their_beginnings() -> None:
    """Long ones only, and none that takes a canary: that one is no text of the script's own."""
    answers = ("The rate is 19 per cent.", "short", "Bearer {canary:token} is it")
    script = script_of(*(f'- answer: "{answer}"' for answer in answers), NO_CHANGE)
    assert script.answers(11) == ("The rate is",)
