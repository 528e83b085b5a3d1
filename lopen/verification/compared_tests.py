"""The tests on the two sides of a change, paired: by name, by body, by expectation. Pairs that say less ask a
question.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from lopen.verification.findings import ChangeQuestion, QuestionKind
from lopen.verification.syntax import GRAMMAR_OF
from lopen.verification.test_files import MAX_CHARS, FileChange
from lopen.verification.test_reader import TestCase, read_tests, tokens

SHOWN = 6  # names in a message
LONGEST_SIDE = 6_000  # characters of one version in a question
_DATA = (".json", ".csv", ".tsv", ".yaml", ".yml", ".toml", ".txt", ".xml")
_LITERAL = re.compile(r"\d|[\"']")


@dataclass
class ComparedTests:
    """`pairs` are the same test before and after. `lost` tests have no counterpart, `gained` ones are new.

    `taken_up` are lost tests with the test that seems to check the same now. `tables` are (path, rows gone, rows new) of
    tables outside of tests. `has_data`: a file of data changed, from which tests may read their rows.
    """

    pairs: list[tuple[TestCase, TestCase]] = field(default_factory=list)
    lost: list[TestCase] = field(default_factory=list)
    gained: list[TestCase] = field(default_factory=list)
    taken_up: list[tuple[TestCase, TestCase]] = field(default_factory=list)
    tables: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)
    has_data: bool = False

    def pair_by(self, key: Callable[[TestCase], object]) -> None:
        """Pair the tests that agree in a key; each counterpart serves once."""
        waiting: dict[object, list[TestCase]] = {}
        for case in self.gained:
            waiting.setdefault(key(case), []).append(case)
        still_lost = []
        for case in self.lost:
            found = waiting.get(key(case))
            if found:
                self.pairs.append((case, found.pop(0)))
            else:
                still_lost.append(case)
        self.lost = still_lost
        self.gained = [case for group in waiting.values() for case in group]

    def pair_renamed(self) -> None:
        """Pair the tests that differ only in names, each of which the change renames in one way."""
        for case in list(self.lost):
            words = _words_in(case)
            found = next((new for new in self.gained if _are_renamed(words, _words_in(new))), None)
            if found is not None:
                self.lost.remove(case)
                self.gained.remove(found)
                self.pairs.append((case, found))

    def find_taken_up(self) -> None:
        """Find the lost tests whose assertions stand, as they were, in tests that are new or have grown; and those whose
        names and literals stand together in one of these.
        """
        grown = [(new, tokens(old.body)) for old, new in self.pairs if len(new.body) > len(old.body)]
        moved = Counter(text for new in self.gained for text in new.expects)
        for old, new in self.pairs:
            moved += Counter(new.expects) - Counter(old.expects)
        for case in list(self.lost):
            if case.expects and all(moved[text] for text in case.expects):
                moved -= Counter(case.expects)
                self.lost.remove(case)
        candidates = [(new, frozenset[str]()) for new in self.gained] + grown
        for case in list(self.lost):
            wanted = frozenset().union(*map(_content, case.expects)) - {case.short}
            if not any(map(_LITERAL.match, wanted)) or not any(token[0].isalpha() for token in wanted):
                continue
            for new, known in candidates:
                if wanted <= new.tokens and not wanted <= known:
                    self.lost.remove(case)
                    self.taken_up.append((case, new))
                    break


def compare_tests(changes: Sequence[FileChange]) -> ComparedTests:
    """Return the tests of changed files, matched the surest way first."""
    found = ComparedTests(has_data=any(change.path.endswith(_DATA) for change in changes))
    rows: dict[str, tuple[Counter[str], Counter[str]]] = {}
    for change in changes:
        if len(change.after or "") > MAX_CHARS:
            continue  # cannot be read: the runs alone tell
        before, after = read_tests(change.path, change.before), read_tests(change.path, change.after)
        found.lost += before.cases
        found.gained += after.cases
        sides = Counter(before.rows), Counter(after.rows)
        rows[change.path] = (sides[0] - sides[1], sides[1] - sides[0])
    moved = sum((new for _, new in rows.values()), Counter[str]())
    for path, (gone, new) in rows.items():
        if lost := gone - moved:
            found.tables.append((path, tuple(lost.elements()), tuple(new.elements())))
    found.pair_by(lambda case: (case.path, case.name, case.body))
    found.pair_by(lambda case: (case.path, case.name))
    found.pair_by(lambda case: (case.short, case.body))
    found.pair_by(lambda case: _inside(case))
    found.pair_by(lambda case: (case.path, _plain(case.short)))
    found.pair_by(lambda case: _plain(case.short))
    found.pair_renamed()
    found.find_taken_up()
    return found


def text_questions(compared: ComparedTests, told: frozenset[str] = frozenset()) -> Iterator[ChangeQuestion]:
    """Yield a question for each file with tests that expect less, or something else. `told`: names asked about already."""
    fewer: dict[str, list[tuple[TestCase, TestCase]]] = {}
    other: dict[str, list[tuple[TestCase, TestCase]]] = {}
    for old, new in compared.pairs:
        gone = Counter(old.expects) - Counter(new.expects)
        if not gone or f"{new.path}::{new.name}" in told:
            continue
        kind = fewer if len(new.expects) < len(old.expects) else other
        kind.setdefault(new.path, []).append((old, new))
    for old, new in compared.taken_up:
        fewer.setdefault(new.path, []).append((old, new))
    for path, gone_rows, new_rows in compared.tables:
        if len(new_rows) < len(gone_rows):
            text = f"A table of tests lost {len(gone_rows)} rows and gained {len(new_rows)}: is each lost row obsolete?"
            yield ChangeQuestion("", "fewer_assertions", text, path, None, _side(gone_rows), _side(new_rows))
    for path, pairs in fewer.items():
        text = f"{_listed(pairs)} expect less than before: is what they no longer check obsolete, or checked elsewhere?"
        yield question("fewer_assertions", text, path, pairs)
    for path, pairs in other.items():
        text = f"{_listed(pairs)} expect something else than before: is the new expectation asked for?"
        yield question("changed_expectation", text, path, pairs)


def question(
    kind: QuestionKind, text: str, path: str, pairs: Sequence[tuple[TestCase, TestCase]]
) -> ChangeQuestion:
    """Return a question about pairs of tests, with both versions of each."""
    before = _side(dict.fromkeys(old.source for old, _ in pairs))
    after = _side(dict.fromkeys(new.source for _, new in pairs))
    return ChangeQuestion("", kind, text, path, pairs[0][1].line if pairs else None, before, after)


def numbered(questions: Sequence[ChangeQuestion]) -> tuple[ChangeQuestion, ...]:
    """Return the questions with their ids, in their order."""
    return tuple(replace(each, id=f"Q{number}") for number, each in enumerate(questions, 1))


def shown(names: Sequence[str]) -> str:
    """Return names for a message, the first few of many."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _listed(pairs: Sequence[tuple[TestCase, TestCase]]) -> str:
    return shown([old.name for old, _ in pairs])


def _side(texts: Sequence[str] | dict[str, None]) -> str:
    text = "\n\n".join(texts)
    return text if len(text) <= LONGEST_SIDE else f"{text[:LONGEST_SIDE]}\n[more is left out]"


_FUNCTION = re.compile(r"=>|\bfunction\b")


def _inside(case: TestCase) -> str:
    """Return the body of a test without its own name; of a test with a title its function, however the title is written."""
    if GRAMMAR_OF.get(case.path.rpartition(".")[2]) in ("javascript", "typescript", "tsx"):
        function = _FUNCTION.split(case.body, maxsplit=1)
        if len(function) == 2:
            return function[1]
    return case.body.replace(case.short, "")


_WORDS = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|\w+|[^\w\s]")
_NAME = re.compile(r"[^\W\d]\w*")


def _words_in(case: TestCase) -> list[str]:
    return _WORDS.findall(_inside(case))


def _are_renamed(before: Sequence[str], after: Sequence[str]) -> bool:
    """Return True if names alone differ between two texts, each of them always in the same way."""
    if len(before) != len(after):
        return False
    renamed: dict[str, str] = {}
    for old, new in zip(before, after, strict=True):
        named = _NAME.fullmatch(old) and _NAME.fullmatch(new) and not _FRAMEWORK.match(old)
        if renamed.setdefault(old, new) != new or (old != new and not named):
            return False
    return len(set(renamed.values())) == len(renamed)


def _plain(name: str) -> str:
    """Return a name without what conventions of naming add to it."""
    return re.sub(r"^test|[\W_]", "", name.lower()) or name


_FRAMEWORK = re.compile(
    r"^(?:assert\w*|expect\w*|should\w*|must_\w+|to[A-Z]\w*|to|be\w*|eq|equal\w*|is|not|in|with|raises|pytest|self|t"
    r"|(?:ASSERT|EXPECT|REQUIRE|CHECK)\w*|Assert|True|False|None|true|false|null|nil|this|if|return|Error\w*|Fatal\w*)$"
)


def _content(text: str) -> frozenset[str]:
    """Return the names and literals of a text, less the words of test frameworks."""
    return frozenset(token for token in tokens(text) if not _FRAMEWORK.match(token))
