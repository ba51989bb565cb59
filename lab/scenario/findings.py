"""Collects everything that is wrong with one scenario, so that all of it is reported at once, in file order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lab.errors import Place, ScenarioError, ScenarioErrors
from lab.scenario.yaml_places import ListNode, MapNode, Node, Path, path_words

MAX_REPORTED = 50
_LONGEST_WORD = 64


@dataclass(frozen=True)
class _Finding:
    place: Place
    path: Path
    message: str
    word: str | None
    among: tuple[str, ...]


def short(text: str) -> str:
    """`text` cut to a length that fits in a message, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= 40 else f"{line[:39]}…"


def words(names: Iterable[str], joint: str = ", ") -> str:
    """Names as a message lists them."""
    listed = joint.join(f"`{name}`" for name in names)
    return listed or "none"


def seen(node: Node) -> str:
    """What stands at `node`, in a few words."""
    if isinstance(node, MapNode):
        return "a mapping"
    if isinstance(node, ListNode):
        return "a list"
    if node.value is None:
        return "nothing"
    if isinstance(node.value, str):
        return f"`{short(node.value)}`" if node.value else "an empty text"
    if isinstance(node.value, bool):
        return node.text.lower()
    return f"the number {short(node.text)}"


def nearest(word: str, among: Iterable[str]) -> str | None:
    """The word of `among` that `word` was probably meant to be."""
    if len(word) > _LONGEST_WORD:
        return None
    import difflib  # only for a scenario that is wrong: it costs as much to import as a scenario to read

    candidates = tuple(among)
    folded = word.lower()
    same = [name for name in candidates if name.lower() == folded]
    return next(iter(same or difflib.get_close_matches(word, candidates, n=1, cutoff=0.6)), None)


class Findings:
    """The errors of the scenario in `file`."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._found: list[_Finding] = []

    @property
    def full(self) -> bool:
        """Whether more is known than will be reported, so that no more work needs to go into a message."""
        return len(self._found) > MAX_REPORTED

    def add(
        self,
        node: Node,
        message: str,
        *,
        word: str | None = None,
        among: Iterable[str] = (),
        place: Place | None = None,
        path: Path | None = None,
    ) -> None:
        """Note what is wrong at `node`; `word` is compared with `among` to propose the nearest."""
        finding = _Finding(place or node.place, node.path if path is None else path, message, word, tuple(among))
        self._found.append(finding)

    def any_in(self, node: Node) -> bool:
        """Whether something is wrong at `node` or inside, so that what is left of it says little."""
        start, file = node.path, node.place.file
        return any(one.place.file == file and one.path[: len(start)] == start for one in self._found)

    def note(self, error: ScenarioError) -> None:
        """Note an error that was made elsewhere, at its place."""
        self._found.append(_Finding(error.place, (error.path,), error.message, None, ()))

    def report(self) -> None:
        """Raise ScenarioErrors if there is anything to report."""
        if not self._found:
            return
        ordered = sorted(dict.fromkeys(self._found), key=self._order)
        errors = [
            ScenarioError(
                finding.place,
                path_words(finding.path),
                finding.message,
                nearest(finding.word, finding.among) if finding.word is not None else None,
            )
            for finding in ordered[:MAX_REPORTED]
        ]
        if left := len(ordered[MAX_REPORTED:]):
            errors.append(ScenarioError(ordered[MAX_REPORTED].place, "", f"and {left} more from here on."))
        raise ScenarioErrors(tuple(errors))

    def _order(self, finding: _Finding) -> tuple[bool, int, int]:
        return finding.place.file != self._file, finding.place.line, finding.place.column
