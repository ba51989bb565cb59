"""The tools that the MCP conformance runner looks for. They are listed only where a setting asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.store.tools import Tool, ToolResult, failed, text_block

_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
_IMAGE = {"type": "image", "data": _PNG, "mimeType": "image/png"}
_AUDIO = {"type": "audio", "data": _WAV, "mimeType": "audio/wav"}

_TEXT = {"type": "string"}
_REFERRING: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {"$anchor": "addressDef", "type": "object", "properties": {"street": _TEXT, "city": _TEXT}},
    },
    "properties": {
        "name": _TEXT,
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": _TEXT,
        "email": _TEXT,
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def conformance_tools() -> tuple[Tool, ...]:
    """Ten tools with one kind of answer each."""
    return (
        _saying("test_simple_text", text_block("This is a simple text response for testing.")),
        _saying("test_image_content", _IMAGE),
        _saying("test_audio_content", _AUDIO),
        _saying("test_embedded_resource", _resource("test://embedded-resource", "text/plain", "An embedded resource.")),
        _saying(
            "test_multiple_content_types",
            text_block("Multiple content types test:"),
            _IMAGE,
            _resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
        ),
        _saying("test_tool_with_progress", text_block("Done."), progress=(0, 50, 100)),
        Tool("test_error_handling", "Always fails.", lambda _: failed("This tool intentionally returns an error.")),
        Tool("json_schema_2020_12_tool", "Has a schema of many keywords.", _count, _REFERRING),
        _saying("test_logging_tool", text_block("Done, and nothing was logged.")),
        _saying("test_reconnection", text_block("Done without a break.")),
    )


def _saying(name: str, *content: Mapping[str, Any], progress: tuple[int, ...] = (100,)) -> Tool:
    return Tool(name, f"Answers the conformance runner: {name}.", lambda _: ToolResult(content), progress=progress)


def _count(given: Mapping[str, Any]) -> ToolResult:
    return ToolResult((text_block(f"{len(given)} members."),))


def _resource(uri: str, mime_type: str, text: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": text}}
