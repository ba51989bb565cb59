import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.localagent.prompt import PromptEmpty, PromptTooLarge, chat_text, request_text


@pytest.mark.req("CHAT-012", "CHAT-013", "CHAT-014", "CHAT-015")
@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("a" * 16384, True),
        ("a" * 16385, False),
        ("é" * 8192, True),
        ("é" * 8193, False),
        ("語" * 6000, False),
        ("a" * 16380 + "\ufffd" * 10, False),
    ],
)
def test_the_limit_of_a_chat_is_in_bytes(text: str, fits: bool) -> None:
    if fits:
        assert chat_text([text]) == text
    else:
        with pytest.raises(PromptTooLarge):
            chat_text([text])


@pytest.mark.req("CHAT-016")
def test_parts_are_joined_and_trimmed_before_they_are_measured() -> None:
    assert chat_text(["  a", "b \ufeff"]) == "a\n\nb"
    with pytest.raises(PromptTooLarge):
        chat_text(["a" * 8192, "b" * 8192])
    assert chat_text([" " * 9000, "b" * 16384]) == "b" * 16384


@pytest.mark.req("CHAT-017")
@pytest.mark.parametrize("parts", [[], [" "], ["\n", "\u3000"]])
def test_an_empty_chat_gets_no_invented_prompt(parts: list[str]) -> None:
    with pytest.raises(PromptEmpty):
        chat_text(parts)


@given(st.text(min_size=1).map(lambda text: f"x{text}x"))
def test_a_chat_is_never_shortened(text: str) -> None:
    assert chat_text([text]) == text


@pytest.mark.req("LA-029", "LA-030")
def test_the_text_of_other_jobs_is_cut_between_characters() -> None:
    assert request_text("fix", ["a", "b "], None) == "a\n\nb"
    assert request_text("fix", ["a" + "é" * 40000], None) == "a" + "é" * 32767


@pytest.mark.req("LA-029")
@pytest.mark.parametrize("kind", ["fix", "implement"])
def test_an_empty_text_becomes_a_sentence_with_the_incident(kind: str) -> None:
    assert request_text(kind, [" "], "inc-7").endswith("Incident: inc-7")
    assert request_text(kind, [], None)
