from __future__ import annotations

from dataclasses import replace

import pytest

from lab.errors import UsageError
from lab.partner.model.settings import AgentSettings, GivenKeys, PartnerSettings, environment_from
from tests.partner.model.calls import SETTINGS, TEAM


@pytest.mark.req("PA-008", "PA-060")
@pytest.mark.parametrize(
    ("variables", "environment"),
    [
        ({}, "test"),
        ({"PARTNER_API_ENVIRONMENT": ""}, "test"),
        ({"PARTNER_API_ENVIRONMENT": "test", "NODE_ENV": "production"}, "test"),
        ({"NODE_ENV": "production"}, "test"),
        ({"PARTNER_API_ENVIRONMENT": "production"}, "production"),
    ],
)
def test_one_variable_alone_chooses_the_environment(variables: dict[str, str], environment: str) -> None:
    assert replace(SETTINGS, environment=environment_from(variables)).environment == environment


@pytest.mark.req("PA-060")
@pytest.mark.parametrize("value", ["Test", "staging", " "])
def test_another_environment_stops_the_start(value: str) -> None:
    with pytest.raises(UsageError, match="test, production"):
        replace(SETTINGS, environment=environment_from({"PARTNER_API_ENVIRONMENT": value}))


def test_an_agent_belongs_to_a_team_that_is_there() -> None:
    with pytest.raises(UsageError, match="a1"):
        PartnerSettings("org", (TEAM,), (AgentSettings("a1", "elsewhere"),))


@pytest.mark.parametrize("organization_id", ["", "a/b"])
def test_an_organization_id_fits_into_a_path(organization_id: str) -> None:
    with pytest.raises(UsageError):
        PartnerSettings(organization_id, (), ())


@pytest.mark.req("PRIV-015")
def test_no_secret_stands_in_what_is_printed() -> None:
    keys = GivenKeys("s3cret-a", "s3cret-b", "s3cret-c")
    assert "s3cret" not in repr(replace(SETTINGS, keys=keys, static_credential="s3cret-d"))
