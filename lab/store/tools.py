"""The store's tools: their definitions as a client sees them, and what they do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lab.store.catalogue import Catalogue
from lab.store.rpc import JsonObject, compact

if TYPE_CHECKING:
    import jsonschema_rs

MAX_FOUND = 50
MAX_QUERY = 200


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool said: content blocks, and the same as an object where the tool has an output schema."""

    content: tuple[JsonObject, ...]
    structured: JsonObject | None = None
    is_error: bool = False

    def to_json(self) -> dict[str, Any]:
        """The result of a tools/call."""
        structured = {} if self.structured is None else {"structuredContent": self.structured}
        return {"content": list(self.content), **structured, "isError": self.is_error}


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool. `approved` tells whether it may run at all; `progress` the steps that it tells of when asked."""

    name: str
    description: str
    run: Callable[[Mapping[str, Any]], ToolResult]
    input_schema: JsonObject = field(default_factory=lambda: {"type": "object"})
    output_schema: JsonObject | None = None
    read_only: bool = True
    approved: bool = True
    progress: tuple[int, ...] = (100,)
    _schema: str = field(init=False, repr=False, compare=False)
    """`input_schema` as text, by which its validator is found."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_schema", compact(self.input_schema))

    def to_json(self) -> dict[str, Any]:
        """The entry of tools/list."""
        output = {} if self.output_schema is None else {"outputSchema": self.output_schema}
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": self.input_schema,
            **output,
            # MCP-017: how a client is told
            "annotations": {"readOnlyHint": self.read_only},
        }

    def takes(self, arguments: JsonObject) -> bool:
        """Whether its schema allows these arguments."""
        return _validator(self._schema).is_valid(arguments)

    def call(self, arguments: JsonObject) -> ToolResult:
        """Run it. Arguments that its schema refuses, like all that goes wrong inside a tool, give an error result."""
        if not self.takes(arguments):
            return failed("The arguments are not what the tool's inputSchema asks for.")
        return self.run(arguments)


class ToolSet:
    """Tools by name, in the order in which they are listed."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    def find(self, name: str | None) -> Tool | None:
        """The tool of this name."""
        return None if name is None else self._tools.get(name)

    def listed(self) -> list[dict[str, Any]]:
        """All of them, as tools/list has them: always the same list (MCP-019)."""
        return [tool.to_json() for tool in self._tools.values()]

    def approved_reading(self) -> tuple[str, ...]:
        """The names of those that may be a fixture's tool (MCP-008)."""
        return tuple(tool.name for tool in self._tools.values() if tool.approved and tool.read_only)


def said(value: JsonObject) -> ToolResult:
    """A result as text JSON and as structured content (MCP-016)."""
    return ToolResult((text_block(compact(value)),), value)


def failed(message: str) -> ToolResult:
    """A result that tells of a failure."""
    return ToolResult((text_block(message),), is_error=True)


def text_block(text: str) -> JsonObject:
    """A content block."""
    return {"type": "text", "text": text}


def store_tools(catalogue: Catalogue) -> tuple[Tool, ...]:
    """The four reading tools, and the writing one that is listed and never approved."""
    return (
        Tool(
            "catalog_get",
            "One product of the catalogue, by its number.",
            lambda given: _one(catalogue.products.get(given["productId"]), "product"),
            _object({"productId": {"type": "integer"}}),
            _PRODUCT,
        ),
        Tool(
            "catalog_search",
            "Products that have all the words in name, description or category.",
            lambda given: _search(catalogue, given),
            _object(
                {
                    "query": {"type": "string", "minLength": 1, "maxLength": MAX_QUERY},
                    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_FOUND},
                },
                due=("query",),
            ),
            _object({"total": _COUNT, "products": {"type": "array", "maxItems": MAX_FOUND, "items": _PRODUCT}}),
        ),
        Tool(
            "store_status",
            "Whether the store is open, and how much it sells.",
            lambda _: said({"state": "open", "products": len(catalogue.products), "currency": "EUR"}),
            _object({}),
            _object({"state": {"enum": ["open", "closed"]}, "products": _COUNT, "currency": {"type": "string"}}),
        ),
        Tool(
            "order_lookup",
            "One order, by its number.",
            lambda given: _one(catalogue.orders.get(given["orderId"]), "order"),
            _object({"orderId": {"type": "string", "maxLength": 32}}),
            _object(
                {
                    "orderId": {"type": "string"},
                    "productId": {"type": "integer"},
                    "quantity": _COUNT,
                    "state": {"enum": ["open", "shipped", "returned"]},
                }
            ),
        ),
        Tool(
            "price_update",
            "Sets a product's price.",
            lambda _: failed("The store takes no changes."),
            _object({"productId": {"type": "integer"}, "priceCents": _COUNT}),
            _PRODUCT,
            read_only=False,
            approved=False,
        ),
    )


def _one(found: Any, what: str) -> ToolResult:
    # MCP-016: what is unknown is an error result, not an error of the protocol
    return failed(f"There is no such {what}.") if found is None else said(found.to_json())


def _search(catalogue: Catalogue, given: Mapping[str, Any]) -> ToolResult:
    found = catalogue.search(given["query"])
    # JSON Schema takes 3.0 for an integer.
    shown = found[: int(given.get("limit", 10))]
    return said({"total": len(found), "products": [product.to_json() for product in shown]})


def _object(properties: JsonObject, due: Sequence[str] | None = None) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties if due is None else due),
        "additionalProperties": False,
    }


_COUNT = {"type": "integer", "minimum": 0}
_PRODUCT = _object(
    {
        "productId": {"type": "integer"},
        "name": {"type": "string"},
        "description": {"type": "string"},
        "category": {"type": "string"},
        "priceCents": _COUNT,
        "currency": {"type": "string"},
        "stock": _COUNT,
    }
)


@lru_cache(maxsize=64)
def _validator(schema: str) -> jsonschema_rs.Validator:
    import jsonschema_rs  # costs more than the rest of the start, and most commands run no store

    return jsonschema_rs.validator_for(json.loads(schema))
