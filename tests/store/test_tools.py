"""The tools: what is told of them, what they do, and that their answers are what their schemas say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema_rs
import pytest

from lab.store.catalogue import FIXED_PRODUCT, make_catalogue
from lab.store.conformance_tools import conformance_tools
from lab.store.tools import ToolResult, ToolSet, store_tools
from tests.store.bench import MARKER

TOOLS = ToolSet(store_tools(make_catalogue(7, 20)))


def call(name: str, arguments: Mapping[str, Any]) -> ToolResult:
    tool = TOOLS.find(name)
    assert tool is not None
    result = tool.call(arguments)
    if result.structured is not None:
        assert tool.output_schema is not None
        jsonschema_rs.validate(dict(tool.output_schema), result.structured)
    return result


@pytest.mark.req("MCP-017", "MCP-018")
def test_four_tools_read_and_one_writes() -> None:
    listed = {tool["name"]: tool["annotations"]["readOnlyHint"] for tool in TOOLS.listed()}
    assert listed == {
        "catalog_get": True,
        "catalog_search": True,
        "store_status": True,
        "order_lookup": True,
        "price_update": False,
    }
    assert TOOLS.approved_reading() == ("catalog_get", "catalog_search", "store_status", "order_lookup")


def test_each_tool_says_what_it_takes_and_gives() -> None:
    for tool in TOOLS.listed():
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            assert schema["type"] == "object"
            jsonschema_rs.validator_for(schema)


@pytest.mark.req("MCP-001")
def test_the_list_holds_no_product() -> None:
    assert MARKER not in str(TOOLS.listed())


@pytest.mark.req("MCP-004", "MCP-016")
def test_a_product_comes_as_text_and_as_an_object() -> None:
    result = call("catalog_get", {"productId": 9001})
    assert result.structured == FIXED_PRODUCT.to_json()
    assert result.content[0]["type"] == "text"
    assert MARKER in result.content[0]["text"]


@pytest.mark.req("MCP-016")
@pytest.mark.parametrize("product_id", [9999, -1, 10**40])
def test_a_product_that_is_unknown_is_an_error_result(product_id: int) -> None:
    result = call("catalog_get", {"productId": product_id})
    assert (result.is_error, result.structured) == (True, None)
    assert str(product_id) not in str(result.content)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("catalog_get", {}),
        ("catalog_get", {"productId": "9001"}),
        ("catalog_get", {"productId": 9001.5}),
        ("catalog_get", {"productId": 9001, "more": 1}),
        ("catalog_get", {"productId": "\ud800"}),
        ("catalog_search", {"query": ""}),
        ("catalog_search", {"query": "x" * 201}),
        ("catalog_search", {"query": "x", "limit": 51}),
        ("store_status", {"x": 1}),
        ("order_lookup", {"orderId": 7001}),
    ],
)
def test_arguments_of_another_shape_are_an_error_result(name: str, arguments: dict[str, Any]) -> None:
    assert call(name, arguments).is_error


def test_a_search_is_cut_to_its_limit() -> None:
    result = call("catalog_search", {"query": "o", "limit": 3.0})
    assert result.structured is not None
    assert len(result.structured["products"]) == 3 < result.structured["total"]
    assert call("catalog_search", {"query": "trail"}).structured is not None


@pytest.mark.req("MCP-018")
def test_the_status_has_numbers() -> None:
    assert call("store_status", {}).structured == {"state": "open", "products": 21, "currency": "EUR"}


def test_an_order() -> None:
    assert call("order_lookup", {"orderId": "SO-7001"}).structured is not None
    assert call("order_lookup", {"orderId": "SO-1"}).is_error


def test_the_conformance_runners_tools_are_ten_and_answer() -> None:
    tools = conformance_tools()
    assert len({tool.name for tool in tools}) == 10
    for tool in tools:
        result = tool.call({"name": "n", "email": "e"} if tool.name == "json_schema_2020_12_tool" else {})
        assert result.content
        assert result.is_error == (tool.name == "test_error_handling")
    assert not {tool.name for tool in tools} & {tool["name"] for tool in TOOLS.listed()}
