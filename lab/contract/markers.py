"""Requirement markers, read from the source text of a test module. Pure.

A test shows an entry of the ledger by `@pytest.mark.req("CHAT-036")`. Markers are read from the syntax tree, without
importing a test, and only where pytest itself reads them; one that stands elsewhere would claim what no test
shows, and is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from lab.errors import ContractError


@dataclass(frozen=True, order=True)
class Marker:
    """One id named by one marker; `line` counts from 1."""

    id: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.id} at {self.file}:{self.line}"


def markers_in(source: str, filename: str, *, collected: bool = True) -> list[Marker]:
    """Every requirement id that the test module's markers name, in source order.

    Read are decorators of tests and test classes, `pytestmark`, and `marks=` of `pytest.param`. Ids are string
    literals. A function that makes a `pytest.param` may pass on ids that it is given, as `req(ids)` or
    `req(*ids.split())`; then its calls in the module hold the literals. Of a module that pytest does not collect, whose
    cases a test module imports, only `marks=` is read. Raises ContractError for source that does
    not parse, a marker whose ids are not such literals, and a marker that stands where pytest does not read it.
    """
    return sorted(_Module(_tree(source, filename), filename, collected).markers(), key=lambda marker: marker.line)


def imports_of(source: str, filename: str) -> set[str]:
    """Full names of the modules that a module may import; what `from a import b` takes counts as a module too.

    Raises ContractError for source that does not parse.
    """
    names: set[str] = set()
    for node in ast.walk(_tree(source, filename)):
        match node:
            case ast.Import(names=aliases):
                names.update(alias.name for alias in aliases)
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                names.update([module, *(f"{module}.{alias.name}" for alias in aliases)])
    return names


def _tree(source: str, filename: str) -> ast.Module:
    try:
        return ast.parse(source, filename)
    except (SyntaxError, ValueError) as error:
        raise ContractError(f"{filename}: cannot be read as Python: {error}") from error


@dataclass(frozen=True)
class _Module:
    tree: ast.Module
    filename: str
    collected: bool

    def markers(self) -> Iterator[Marker]:
        makers = {id(call.func): (call, maker) for maker in self._case_makers() for call in _req_calls_below(maker)}
        read = {id(call.func): call for node in ast.walk(self.tree) for call in self._read(node)}
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.Attribute) or not _is_req(node):
                continue
            if id(node) in makers:
                yield from self._named(*makers[id(node)])
            elif id(node) in read:
                yield from self._named(read[id(node)], None)
            else:
                raise self._error(
                    node,
                    "a req marker that pytest does not read; call it with its ids as decorator of a test or test "
                    "class, in pytestmark, or in marks= of pytest.param",
                )

    def _read(self, node: ast.AST) -> Iterator[ast.Call]:
        return _read_by_pytest(node) if self.collected else _req_calls(_marks_of_param(node))

    def _case_makers(self) -> Iterator[ast.FunctionDef]:
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef) and any(_marks_of_param(inner) for inner in ast.walk(node)):
                yield node

    def _named(self, call: ast.Call, maker: ast.FunctionDef | None) -> Iterator[Marker]:
        if not call.args or call.keywords:
            raise self._error(call, 'a req marker names its ids like req("CHAT-036")')
        for argument in call.args:
            match argument:
                case ast.Constant(value=str(id_)):
                    yield Marker(id_, self.filename, argument.lineno)
                case ast.Name(id=parameter) if maker is not None:
                    yield from (Marker(text, self.filename, line) for text, line in self._given(maker, parameter))
                case ast.Starred(
                    value=ast.Call(func=ast.Attribute(value=ast.Name(id=parameter), attr="split"), args=[])
                ) if maker is not None:
                    for text, line in self._given(maker, parameter):
                        yield from (Marker(id_, self.filename, line) for id_ in text.split())
                case _:
                    raise self._error(argument, _LITERALS)

    def _given(self, maker: ast.FunctionDef, parameter: str) -> Iterator[tuple[str, int]]:
        """The texts, with their lines, that the module's calls of the maker give for the parameter."""
        for node in ast.walk(self.tree):
            match node:
                case ast.Call(func=ast.Name(id=maker.name)):
                    value = _arguments(maker, node).get(parameter)
                    if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
                        raise self._error(node, _LITERALS)
                    yield value.value, node.lineno

    def _error(self, node: ast.expr, message: str) -> ContractError:
        return ContractError(f"{self.filename}:{node.lineno}: {message}")


_LITERALS = "a req marker names its ids as string literals, so that they can be read without running the test"


def _read_by_pytest(node: ast.AST) -> Iterator[ast.Call]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name.startswith("test"):
            yield from _req_calls(node.decorator_list)
        case ast.ClassDef(name=name) if name.startswith("Test"):
            yield from _req_calls(node.decorator_list)
        case ast.Assign(targets=[target], value=value) if _is_pytestmark(target):
            yield from _req_calls([value])
        case ast.AnnAssign(target=target, value=ast.expr() as value) if _is_pytestmark(target):
            yield from _req_calls([value])
        case _:
            yield from _req_calls(_marks_of_param(node))


def _marks_of_param(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.Call(func=ast.Attribute(attr="param") | ast.Name(id="param"), keywords=keywords):
            return [keyword.value for keyword in keywords if keyword.arg == "marks"]
        case _:
            return []


def _is_pytestmark(target: ast.expr) -> bool:
    match target:
        case ast.Name(id="pytestmark") | ast.Attribute(attr="pytestmark"):
            return True
        case _:
            return False


def _req_calls(expressions: Iterable[ast.expr]) -> Iterator[ast.Call]:
    for expression in expressions:
        match expression:
            case ast.List(elts=inner) | ast.Tuple(elts=inner):
                yield from _req_calls(inner)
            case ast.Call(func=func) if _is_req(func):
                yield expression


def _req_calls_below(node: ast.AST) -> Iterator[ast.Call]:
    return (inner for inner in ast.walk(node) if isinstance(inner, ast.Call) and _is_req(inner.func))


def _is_req(node: ast.AST) -> bool:
    """Whether this is the expression `pytest.mark.req` (or `mark.req`) itself."""
    match node:
        case ast.Attribute(attr="req", value=ast.Attribute(attr="mark") | ast.Name(id="mark")):
            return True
        case _:
            return False


def _arguments(function: ast.FunctionDef, call: ast.Call) -> Mapping[str, ast.expr]:
    """What the call gives for each parameter, defaults included; nothing if a starred argument hides some."""
    if any(isinstance(value, ast.Starred) for value in call.args) or any(word.arg is None for word in call.keywords):
        return {}
    spec = function.args
    names = [argument.arg for argument in chain(spec.posonlyargs, spec.args)]
    bound: dict[str, ast.expr] = dict(zip(reversed(names), reversed(spec.defaults), strict=False))
    for argument, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
        if default is not None:
            bound[argument.arg] = default
    bound.update(zip(names, call.args, strict=False))
    bound.update({keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None})
    return bound
