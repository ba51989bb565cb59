"""Profiles become the exact command, folder and environment."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lab.errors import UsageError
from lab.sut.launch import blank_values, environment_to_show, resolve
from lab.sut.profile import Profile, find_profile, load_profile, profile_for_command
from tests.sut.test_profile import SHIPPED, write
from tests.sut.values import VALUES, with_token

HOME = Path("/temporary/home")
CALLER = {"PATH": "/bin", "LC_ALL": "C", "HOME": "/home/user", "SECRET_OF_THE_CALLER": "x", "NODE_OPTIONS": "-v"}
BLANKS = {"checkout": "/checkout", "url_variable": "URL"}


@pytest.fixture
def profile(tmp_path: Path) -> Profile:
    return load_profile(
        write(
            tmp_path,
            "profile: p\nabout: x\ncommand: [run, '{home}']\ncwd: '{blank:checkout}'\ninherit: [NODE_*]\n"
            "environment: { '{blank:url_variable}': '{gateway_ws_url}', TENANT_ID: '{tenant_id}' }\n"
            "blanks: { checkout: the folder, url_variable: the variable }\n",
        )
    )


@pytest.mark.req("LA-046", "LA-047")
def test_a_profile_is_filled(profile: Profile) -> None:
    launch = resolve(profile, VALUES, HOME, BLANKS, CALLER)
    assert launch.command == ("run", "/temporary/home")
    assert launch.cwd == Path("/checkout")
    assert launch.environment == {
        "PATH": "/bin",
        "LC_ALL": "C",
        "NODE_OPTIONS": "-v",
        "HOME": "/temporary/home",
        "URL": VALUES.gateway_ws_url,
        "TENANT_ID": VALUES.tenant_id,
    }


def test_the_users_home_is_passed_on_when_the_profile_says_so(tmp_path: Path) -> None:
    profile = load_profile(write(tmp_path, "profile: p\nabout: x\ncommand: [run, '{home}']\nhome: inherit\n"))
    launch = resolve(profile, VALUES, HOME, {}, CALLER)
    assert launch.environment["HOME"] == "/home/user"
    assert launch.command[1] == "/home/user"


@pytest.mark.req("LA-046")
def test_open_blanks_are_named_with_both_ways_to_fill_them(profile: Profile) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(profile, VALUES, HOME, {}, CALLER)
    for words in (
        "checkout: the folder",
        "--set sut.checkout=VALUE or LAB_SUT_CHECKOUT=VALUE",
        "url_variable: the variable",
        "--set sut.url_variable=VALUE or LAB_SUT_URL_VARIABLE=VALUE",
    ):
        assert words in str(caught.value)


@pytest.mark.req("LA-046")
def test_the_environment_fills_a_blank_and_an_option_comes_first(profile: Profile) -> None:
    caller = {**CALLER, "LAB_SUT_CHECKOUT": "/from/environment", "LAB_SUT_URL_VARIABLE": "FROM_ENVIRONMENT"}
    launch = resolve(profile, VALUES, HOME, {"url_variable": "FROM_OPTION"}, caller)
    assert launch.cwd == Path("/from/environment")
    assert launch.environment["FROM_OPTION"] == VALUES.gateway_ws_url
    assert not {"FROM_ENVIRONMENT", "LAB_SUT_CHECKOUT"} & set(launch.environment)


def test_a_name_filled_with_nothing_leaves_its_variable_out(profile: Profile) -> None:
    launch = resolve(profile, VALUES, HOME, {**BLANKS, "url_variable": ""}, CALLER)
    assert VALUES.gateway_ws_url not in launch.environment.values()


@pytest.mark.parametrize(
    ("blanks", "words"),
    [
        ({"chekout": "x"}, "Did you mean `sut.checkout`?"),
        ({**BLANKS, "url_variable": "A B"}, "no name of an environment variable"),
        ({**BLANKS, "url_variable": "TENANT_ID"}, "set already"),
        ({**BLANKS, "url_variable": "HOME"}, "set already"),
        ({**BLANKS, "checkout": ""}, "names no folder"),
        ({**BLANKS, "checkout": "a\0b"}, "NUL"),
    ],
)
def test_a_blank_that_cannot_stand_is_refused(profile: Profile, blanks: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(profile, VALUES, HOME, blanks, CALLER)
    assert words in str(caught.value)


@pytest.mark.parametrize("text", ["x '\0'", "{home}"])
def test_a_command_is_checked_once_it_is_filled(text: str) -> None:
    with pytest.raises(UsageError, match=r"NUL|names no program"):
        resolve(profile_for_command(text), VALUES, Path("\0") if "{" in text else HOME, {}, CALLER)


@pytest.mark.req("LA-046", "SG-021")
def test_a_bare_command_gets_the_labs_names() -> None:
    launch = resolve(profile_for_command("agent --url {gateway_ws_url} 'a b'"), VALUES, HOME, {}, CALLER)
    assert launch.command == ("agent", "--url", VALUES.gateway_ws_url, "a b")
    assert launch.environment["LAB_TRUSTED_KEYS"] == VALUES.texts()["trusted_keys"]
    assert launch.environment["LAB_SIGNATURE_MODE"] == "enforce"
    assert launch.cwd == Path()


@pytest.mark.req("LA-046")
def test_the_shipped_profiles_resolve() -> None:
    reference = resolve(find_profile("lab-reference", SHIPPED), VALUES, HOME, {}, CALLER)
    assert reference.command == (VALUES.python, "-m", "lab", "serve", "local-agent", "--contract", "/contract")
    profile = find_profile("deepdebug-local-agent", SHIPPED)
    blanks = {name: name.upper() for name in profile.blanks}
    node = resolve(profile, VALUES, HOME, {**blanks, "checkout": "/checkout"}, CALLER)
    assert (node.command, node.cwd) == (("node", "src/server.js"), Path("/checkout"))
    assert node.environment["LOCAL_AGENT_PROTOCOL_V2"] == "true"
    assert node.environment["TENANT_ID"] == VALUES.tenant_id
    assert node.environment["LOCAL_AGENT_ID"] == VALUES.agent_id
    assert node.environment["LOCAL_AGENT_PORT"] == "4003"
    assert node.environment["LOCAL_AGENT_CHAT"] == "true"
    assert node.environment["GATEWAY_URL_VARIABLE"] == VALUES.gateway_ws_url
    assert node.environment["AGENT2_URL_VARIABLE"] == VALUES.agent2_url


def test_a_shell_takes_what_is_shown() -> None:
    token = 'it\'s $HOME `x` "y" \\ \n end'
    launch = resolve(profile_for_command("x"), with_token(token), HOME, {}, CALLER)
    shown = environment_to_show(launch)
    assert "PATH" not in shown
    # A shell keeps its own home.
    script = shown + 'printf %s "$LAB_GATEWAY_TOKEN|$HOME"'
    home = {"HOME": "/home/user"}
    done = subprocess.run(["/bin/sh", "-c", script], env=home, capture_output=True, text=True, check=True)
    assert done.stdout == f"{token}|/home/user"


@pytest.mark.req("SEC-015")
def test_the_repr_of_a_launch_shows_no_token() -> None:
    launch = resolve(profile_for_command("x {gateway_token}"), VALUES, HOME, {}, CALLER)
    assert VALUES.gateway_token not in repr(launch)


def test_blanks_in_values_of_variables_are_secrets_and_others_are_not(tmp_path: Path) -> None:
    profile = load_profile(
        write(
            tmp_path,
            "profile: p\nabout: x\ncommand: [run, '{blank:word}']\n"
            "environment: { '{blank:name}': 'Bearer {blank:key}' }\n"
            "blanks: { word: a word, name: a name, key: a key }\n",
        )
    )
    assert blank_values(profile, {"word": "w", "name": "N", "key": "hush"}, {}) == ("hush",)
    assert blank_values(profile, {"word": "w", "name": "N"}, {"LAB_SUT_KEY": "hush"}) == ("hush",)


def test_the_state_s_folder_lies_in_the_temporary_home(tmp_path: Path) -> None:
    profile = load_profile(write(tmp_path, "profile: p\nabout: x\ncommand: [run]\nstate: '{home}/.mine'\n"))
    assert resolve(profile, VALUES, HOME, {}, CALLER).state == HOME / ".mine"
    bare = load_profile(write(tmp_path, "profile: p\nabout: x\ncommand: [run]\n"))
    assert resolve(bare, VALUES, HOME, {}, CALLER).state is None
