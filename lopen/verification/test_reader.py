"""The one reader of test files: the names of tests, their bodies, expectations and skip marks.

It matches and counts. How tests look in each language stands in one table; how they behave is found by running them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from lopen.verification.syntax import FUNCTIONS, GRAMMAR_OF, ParsedFile, nodes_of, parsed_file
from lopen.verification.test_files import MAX_CHARS, looks_like_test, words

if TYPE_CHECKING:
    from lopen.verification.syntax import Node

_LISTS = words(
    "list tuple set dictionary array literal_value array_expression array_initializer array_creation_expression "
    "element_value_array_initializer initializer_list"
)
_ROWS = _LISTS | words(
    "keyed_element literal_element pair object tuple_expression struct_expression call_expression call "
    "object_creation_expression"
)
_STATEMENT = re.compile(r"(?:_statement|_declaration|let_declaration|assertion|macro_invocation)$")
_BLOCKS = words("block statement_block compound_statement declaration_list")
_GROUPS = words("class_definition class_declaration mod_item class class_specifier")
_STRING = re.compile(r"string|template")
_MACRO = re.compile(
    r"\s*(?:\w+_)?(?:TEST|TEST_[FP]|TEST_CASE\w*|Test|START_TEST)\s*\(\s*(?P<name>[^)]*?)\s*\)"
)


_JOINED = re.compile(r"[\"'`]\s*\+|\$\{[^}]*\{")
_COMPUTED = re.compile(r"@DisplayName\(|@\w+Test\([^)]*\bname =")  # JUnit names the test by it


@dataclass(frozen=True, slots=True)
class Language:
    """How tests look in one language.

    `test` is the pattern for the head of a function (marks, words and name, to its body). `titled` are calls that
    take a title and a body: of tests, or of `groups` of tests. `skip` is the mark in a head that keeps a test from
    running, `leave` the call in a body that does. `idle` is a whole test that its runner only compiles. `skip_file`
    in a file's text, or `skip_name` in its path, keeps all of its tests from running, at least elsewhere. `expect`
    begins an assertion, `row` a row of a table in a head. `between` joins the names of groups and tests as runners
    do. `anywhere`: tests also lie in files that are not named like tests.
    """

    test: str
    expect: str
    skip: str
    leave: str = r"(?!)"
    titled: str = ""
    groups: str = r"(?!)"
    row: str = r"(?!)"
    between: str = "::"
    anywhere: bool = False
    idle: str = r"(?!)"
    skip_file: str = r"(?!)"
    skip_name: str = r"(?!)"


_SCRIPT = Language(
    r"(?!)",
    r"\bexpect\s*(?:\.\w+\s*)?\(|\bassert(?:\.\w+)*\s*\(|\.should\b|\bt\.(?:is|not|true|false|deepEqual|like|throws\w*|assert\.\w+)\s*\(",
    r"\.(?:skip|todo|failing)\b|^x(?:it|test|describe|context)\b|\bskip:\s*(?!false)|\btodo:\s*(?!false)",
    r"\b(?:t|this|context|ctx)\.(?:skip|todo)\s*\(",
    r"^(?:x|f)?(?:it|test|specify|describe|context|suite|t\.test)(?:\.\w+)*$",
    r"^(?:x|f)?(?:(?:it|test)\.)?(?:describe|context|suite)\b",
    between=" > ",
    idle=r"^[\w.]+\(\s*(?:\"[^\"]*\"|'[^']*'|`[^`]*`)\s*\)$",
)
LANGUAGES: Mapping[str, Language] = {
    "python": Language(
        r"^(?!.*@(?:\w+\.)*fixture\b).*\bdef test\w*",
        r"\bassert\b|\.assert\w+\s*\(|\b(?:pytest\.)?(?:raises|warns|deprecated_call)\s*\(|\b(?:self|pytest)\.fail\s*\(",
        r"@(?:\w+\.)*skip\w*|@(?:\w+\.)*mark\.(?:skip|xfail)\b\S*|@(?:\w+\.)*expectedFailure\b",
        r"\b(?:pytest\.)?(?:skip|xfail)\s*\(|\bself\.skipTest\s*\(|\bpytest\.importorskip\s*\(|\braise (?:unittest\.)?SkipTest\b",
        skip_file=r"^(?:\w+ *= *)?pytest\.(?:importorskip|skip)\(|^pytestmark\b.*\bskip",
    ),
    **dict.fromkeys(("javascript", "typescript", "tsx"), _SCRIPT),
    "go": Language(
        r"^func (?!TestMain\()(?:Test|Fuzz|Example)(?![a-z])\w*\s*\(",
        r"\b[tbf]\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\s*\(|\b(?:assert|require|is|qt|check)\.\w+\s*\(",
        r"(?!)",
        r"\bt\.(?:Skip|Skipf|SkipNow)\s*\(",
        idle=r"^func Example(?![\s\S]*//\s*(?:Unordered )?[Oo]utput:)",
        skip_file=r"^//go:build |^// \+build ",
        skip_name=r"_(?:aix|android|darwin|freebsd|ios|js|netbsd|openbsd|plan9|solaris|wasip1|windows|386|arm|arm64|wasm)_test\.go$",
    ),
    "rust": Language(
        r"#\[(?:\w+::)*(?:test|rstest|test_case|quickcheck|tokio::test)\b",
        r"\b(?:\w+_)?assert\w*[!_]?\s*\(|\bpanic[!_]\s*\(|\bshould_panic\b|\.unwrap_err\s*\(|\b(?:assert_)?matches!",
        r"#\[ignore\b[^\]]*\]|#\[cfg\((?!test\))[^\]]*\]",
        row=r"#\[(?:case|test_case)(?:::\w+)?\(",
        anywhere=True,
    ),
    "java": Language(
        r"@(?:\w+\.)*(?:Test|ParameterizedTest|RepeatedTest|TestFactory|Property)\b",
        r"\bassert\w*\s*\(|\bverify\w*\s*\(|\bfail\s*\(|\bexpected\s*=|\bassert\b",
        r"@(?:\w+\.)*(?:Disabled|Ignore)\b\S*|@(?:Enabled|Disabled)(?:If|On|For)\w*",
        r"\bassum\w+\s*\(|\babort\s*\(",
        row=r"@CsvSource\b|@ValueSource\b",
        skip_name=r"IT(?:Case)?\.java$",
    ),
    **dict.fromkeys(
        ("c", "cpp"),
        Language(
            r"^\s*(?:\w+_)?(?:TEST|TEST_[FP]|TEST_CASE\w*|Test|START_TEST)\s*\(|\b(?:void|int|static)\b[^({]*\btest\w*\s*\(",
            r"\b(?:ASSERT|EXPECT|CHECK|REQUIRE|TEST_ASSERT|ck_assert|g_assert|cr_assert|assert)\w*\s*\(",
            r"\bDISABLED_\w+",
            r"\b(?:GTEST_SKIP|TEST_IGNORE\w*|cr_skip\w*|g_test_skip)\s*\(",
        ),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class TestCase:
    """One test. `name` is what runners call it in its file, `short` its own part of that.

    `body` is the whole text without comments and layout, `source` the text as written. `expects` are the assertions and the
    rows of its tables; `skip` is the mark that keeps it from running, "" where there is none. `computed`: runners name it
    otherwise than the text does.
    """

    __test__ = False

    path: str
    name: str
    short: str
    body: str
    source: str
    line: int
    expects: tuple[str, ...]
    skip: str = ""
    computed: bool = False

    @cached_property
    def tokens(self) -> frozenset[str]:
        """Names and literals of the body."""
        return tokens(self.body)


_TOKEN = re.compile(r"[A-Za-z_$][\w$]*|\d[\w.]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'")


def tokens(text: str) -> frozenset[str]:
    """Return the names and literals of a text."""
    return frozenset(_TOKEN.findall(text))


@dataclass(frozen=True, slots=True)
class TestFile:
    """The tests of one file, and the rows of tables that stand outside of them."""

    __test__ = False

    cases: tuple[TestCase, ...] = ()
    rows: tuple[str, ...] = ()


EMPTY = TestFile()


def read_tests(path: str, text: str | None) -> TestFile:
    """Return the tests of a file; none of a file that is too large, no text, or in no language of the table."""
    grammar = GRAMMAR_OF.get(path.rpartition(".")[2], "")
    language = LANGUAGES.get(grammar)
    if not text or language is None or len(text) > MAX_CHARS or "\0" in text:
        return EMPTY
    if not (language.anywhere or looks_like_test(path)):
        return EMPTY
    return _Reader(path, parsed_file(text, grammar), language).read()


@dataclass(frozen=True)
class _Place:
    """The groups around a node, and the mark that skips them. `computed`: a group's title is no plain text."""

    names: tuple[str, ...] = ()
    skip: str = ""
    computed: bool = False


class _Reader:
    """Reads one file."""

    def __init__(self, path: str, source: ParsedFile, language: Language) -> None:
        self._path = path
        self._source = source
        self._language = language
        self._expect = re.compile(language.expect.encode())
        self._seen: dict[str, int] = {}

    def read(self) -> TestFile:
        cases = list(self._cases())
        spans = [(start, end) for start, end, _ in cases]
        rows = []
        for node in nodes_of(self._source.root, _LISTS):
            if not any(start <= node.start_byte < end for start, end in spans):
                rows += list(self._rows(node, whole=False))
        return TestFile(tuple(case for *_, case in cases), tuple(rows) if cases else ())

    def _cases(self) -> Iterator[tuple[int, int, TestCase]]:
        waiting = [(self._source.root, _Place(skip=self._skipped_file()))]
        while waiting:
            node, place = waiting.pop()
            inner = place
            if node.type in _GROUPS and node.parent is not None:
                head = self._head(node)
                inner = _Place(
                    (*place.names, self._source.name(_name_of(node))), place.skip or self._skip(head)
                )
            elif node.type == "if_statement" and self._source.language == "python":
                inner = _Place(place.names, place.skip or "if")
            elif node.type in FUNCTIONS and (found := self._function(node, place)):
                yield found
                continue
            elif node.type in FUNCTIONS and not self._language.titled:
                continue  # no runner finds a test inside of a function
            elif self._language.titled and node.type == "call_expression":
                titled = self._titled(node)
                if titled is not None:
                    title, head, group = titled
                    if group:
                        computed = place.computed or self._is_computed(title, self._source.of(node))
                        inner = _Place((*place.names, title), place.skip or self._skip(head), computed)
                    else:
                        yield self._case(node, node.start_byte, title, head, place)
                        if "test(" not in self._source.of(node)[len(head) :]:
                            continue
                        inner = _Place((*place.names, title), place.skip or self._skip(head), place.computed)
            waiting += [(child, inner) for child in reversed(node.named_children)]

    def _function(self, node: Node, place: _Place) -> tuple[int, int, TestCase] | None:
        head = self._head(node)
        if not re.search(self._language.test, head):
            return None
        macro = _MACRO.match(head) if self._source.language in ("c", "cpp") else None
        name = (
            macro["name"].replace(" ", "").replace(",", ".") if macro else self._source.name(_name_of(node))
        )
        return self._case(node, _start(node), name, head, place)

    def _titled(self, node: Node) -> tuple[str, str, bool] | None:
        """Return title, head and whether it is a group, where a call has a title and a body."""
        called = node.child_by_field_name("function")
        given = node.child_by_field_name("arguments")
        if called is None or given is None:
            return None
        plain = self._source.of(called).partition("(")[0].partition("`")[0].rstrip()
        if not re.search(self._language.titled, plain):
            return None
        arguments = [each for each in given.named_children if "comment" not in each.type]
        first = arguments[0] if arguments else None
        body = next((each for each in arguments[1:] if each.type in FUNCTIONS), None)
        if first is None or (body is None and not _STRING.search(first.type)):
            return None
        end = body.start_byte if body is not None else node.end_byte
        title = " ".join(self._source.name(first).split())[:200]
        return title, self._source.span(node.start_byte, end), bool(re.search(self._language.groups, plain))

    def _case(
        self, node: Node, start: int, title: str, head: str, place: _Place
    ) -> tuple[int, int, TestCase]:
        name = self._language.between.join((*place.names, title))
        self._seen[name] = self._seen.get(name, 0) + 1
        source, end = self._source, node.end_byte
        return (
            start,
            end,
            TestCase(
                self._path,
                name if self._seen[name] == 1 else f"{name} ({self._seen[name]})",
                title,
                source.span(start, end),
                source.source(start, end),
                source.text.count(b"\n", 0, node.start_byte) + 1,
                (*self._assertions(node), *self._table(node, start)),
                place.skip or self._skip(head) or self._left(node) or self._idle(source.source(start, end)),
                place.computed
                or bool(_COMPUTED.search(head))
                or self._is_computed(title, source.source(start, end)),
            ),
        )

    def _is_computed(self, title: str, text: str) -> bool:
        """Return True if a title is no plain text of its own."""
        if not self._language.titled:
            return False
        if _JOINED.search(title):
            return True
        return (
            "\\" in title
            or len(title) >= 200
            or not re.search(rf"[\"'`]{re.escape(title)}[\"'`]", " ".join(text.split()))
        )

    def _head(self, node: Node) -> str:
        """Return the marks, words and name of a function or class, up to its body."""
        body = node.child_by_field_name("body")
        if body is None:
            body = next((each for each in node.named_children if each.type in _BLOCKS), None)
        return self._source.span(_start(node), body.start_byte if body is not None else node.end_byte)

    def _skipped_file(self) -> str:
        """Return the mark that keeps every test of the file from running; "" where there is none."""
        text = self._source.text.decode("utf-8", "replace")
        found = re.search(self._language.skip_name, self._path) or re.search(
            self._language.skip_file, text, re.MULTILINE
        )
        return found[0].strip()[:80] if found else ""

    def _idle(self, text: str) -> str:
        return "not run" if re.search(self._language.idle, text) else ""

    def _skip(self, head: str) -> str:
        found = re.search(self._language.skip, head)
        return found[0].strip()[:80] if found else ""

    def _left(self, node: Node) -> str:
        """Return the call that leaves a test unconditionally, on the highest level of its body."""
        for body in nodes_of(node, _BLOCKS):
            for statement in body.named_children:
                code = self._source.code[statement.start_byte : statement.end_byte].decode("utf-8", "replace")
                found = re.match(self._language.leave, code.strip())
                if found:
                    return found[0].strip("( ")
            break
        return ""

    def _assertions(self, node: Node) -> Iterator[str]:
        """Yield the statements that assert, each once."""
        told: set[int] = set()
        for found in self._expect.finditer(self._source.code, node.start_byte, node.end_byte):
            each = self._source.root.descendant_for_byte_range(found.start(), found.start() + 1)
            while each is not None and each.start_byte >= node.start_byte:
                if _STATEMENT.search(each.type) or (each.parent is not None and each.parent.type in _BLOCKS):
                    break
                each = each.parent
            around = each.parent.parent if each is not None and each.parent is not None else None
            if self._source.language == "go" and around is not None and around.type == "if_statement":
                each = around  # a Go test states its expectation in a condition
            if each is not None and node.start_byte <= each.start_byte not in told:
                told.add(each.start_byte)
                yield self._source.of(each).rstrip(";")

    def _table(self, node: Node, start: int) -> Iterator[str]:
        """Yield the rows of a test: from lists in its head, tables in its body, and marks for rows."""
        body = node.child_by_field_name("body")
        head_end = body.start_byte if body is not None else node.end_byte
        top = node.parent if node.parent is not None and node.parent.start_byte == start else node
        for each in nodes_of(top, _LISTS):
            if start <= each.start_byte < node.end_byte:
                yield from self._rows(each, whole=each.start_byte < head_end and top is not node)
        head = self._source.span(start, head_end)
        marks = [found.start() for found in re.finditer(self._language.row, head)]
        for at, end in zip(marks, [*marks[1:], len(head)], strict=False):
            yield head[at:end]

    def _rows(self, node: Node, *, whole: bool) -> Iterator[str]:
        """Yield the elements of a list that is a table: of composite elements, or a `whole` one of any."""
        children = [each for each in node.named_children if "comment" not in each.type]
        if len(children) > 1 or whole:
            yield from (self._source.of(each) for each in children if whole or each.type in _ROWS)


def _start(node: Node) -> int:
    """Return where a function begins with its decorators or attributes."""
    parent = node.parent
    if parent is not None and parent.type == "decorated_definition":
        return int(parent.start_byte)
    start, before = int(node.start_byte), node.prev_named_sibling
    while before is not None and before.type in ("attribute_item", "line_comment", "annotation"):
        if before.type == "attribute_item":
            start = int(before.start_byte)
        before = before.prev_named_sibling
    return start


def _name_of(node: Node) -> Node | None:
    name = node.child_by_field_name("name")
    declarator = node.child_by_field_name("declarator")
    while name is None and declarator is not None:
        inner = declarator.child_by_field_name("declarator")
        name, declarator = (declarator if inner is None else None), inner
    return name or next((each for each in node.named_children if "identifier" in each.type), None)
