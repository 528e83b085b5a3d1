"""Code in JavaScript tests and their setup files that keeps failures from failing the run, whichever test has them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lopen.test_integrity.javascript.adapter import covers, grammar
from lopen.test_integrity.javascript.ranks import is_matcher
from lopen.test_integrity.javascript.words import WORD
from lopen.test_integrity.suite import FileChange, words
from lopen.test_integrity.syntax import FUNCTIONS, ParsedFile, ancestors, dotted, parsed_file
from lopen.verification.findings import Finding, Severity

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

_DATA = re.compile(r"(?:^|/)(?:__)?fixtures?(?:__)?/")
_WORTH_READING = re.compile(
    r"uncaught|\bprovide:|Cypress\.on\(|unhandled|process\.exit|expect\.extend|global(?:This)?\.|window\.|retr(?:y|ies)|\buvu\b|prototype\.|mock|stub|overwriteMethod|overwriteProperty"
)
_UVU = re.compile(r"['\"]uvu['\"]")
_RUN = re.compile(r"^\s*\w+\.run\(\)", re.MULTILINE)
_UNCAUGHT = frozenset({"uncaughtException", "unhandledRejection", "uncaught:exception"})
_IDLE = re.compile(
    r"\{?(?:(?:console|log|logger)\.\w+\([^;{}]{0,200}\);?|return(?: false| true)?;?|undefined|null|void 0|false|true)?\}?$"
)
_LAST = words("after afterAll afterEach teardown suiteTeardown on once run then finally")
_WRITTEN_WITH = re.compile(r"(?:global|globalThis|window|self)\.(?P<name>\w+)$")
_PASSES = "passes whatever it is given"
_PASS = re.compile(r"\bpass: ?([^,}]{1,80})")
_NEVER_RUN = re.compile(r"\.(?:skip|todo)$|^x(?:it|describe)$")
_MANY = re.compile(r"(?![0-2]$)")  # twice is usual for what is slow or remote
_METHOD = re.compile(r"(?P<of>[A-Za-z_$][\w$]*)(?:\.prototype)?\.(?P<name>[\w$]+)$")
_SPY = re.compile(
    r"\b(?:spyOn|stub|method)\((?P<of>[A-Za-z_$][\w$]*)(?:\.prototype)?, ?[\"'`](?P<name>[\w$]+)[\"'`]\)"
)
_ANSWERING = words(
    "mockReturnValue mockReturnValueOnce mockImplementation mockResolvedValue mockResolvedValueOnce returns resolves callsFake"
)
_STAND_IN = re.compile(r"(?:jest|vi|sinon|mock)\.(?:fn|stub|fake)\(")
_ASSERTED = r"\b(?:expect|assert[\w.]*)\((?:await )?[\w$.]*\.{}\("
_DOUBLE = re.compile(r"\bprovide: *(?P<name>\w+),\s*use(?:Value|Class|Factory)\b")
_RETRIES = frozenset({"retry", "retries"})

_Told = tuple[Severity, str, int]


def silencing_findings(changes: Sequence[FileChange]) -> Iterator[Finding]:
    """Yield a finding for each such piece of code that is new in its file."""
    for change in changes:
        text = change.after
        if (
            text is None
            or not covers(change.path)
            or _DATA.search(change.path)
            or not _WORTH_READING.search(text)
        ):
            continue
        if _UVU.search(change.before or "") and _RUN.search(change.before or "") and not _RUN.search(text):
            yield Finding("error", "the tests are declared and not run: test.run() is gone", change.path)
        yield from _provided(change.path, change.before or "", text)
        known = Counter(message for _, message, _ in _told(change.before or "", change.path))
        for severity, message, line in _told(text, change.path):
            passing = message.partition(f" {_PASSES}")
            if passing[1] and passing[0] not in (change.before or ""):
                continue  # a new matcher, of a test of matchers perhaps
            if known[message]:
                known[message] -= 1
            else:
                yield Finding(severity, message, change.path, line)


def _provided(path: str, was: str, now: str) -> Iterator[Finding]:
    """Classes that a container of Nest or Angular made for the tests, and for which the tests hand it a double now."""
    for found in _DOUBLE.finditer(now):
        name = found["name"]
        made = re.search(rf"[\[,]\s*{name}\s*[,\]]", was) and not re.search(rf"\bprovide: *{name}\b", was)
        if made and re.search(rf"\b(?:get|inject|resolve)(?:<[^>]*>)?\({name}\)", now):
            yield Finding(
                "warning", f"{name} is replaced in the tests that ask for it: {found[0][:80]}", path
            )


def _told(text: str, path: str) -> Iterator[_Told]:
    if not _WORTH_READING.search(text):
        return
    source = parsed_file(text, grammar(path))
    for call in source.find("(call_expression) @call", "call"):
        yield from _called(source, call)
    for assignment in source.find("(assignment_expression) @set", "set"):
        yield from _assigned(source, assignment)


def _called(source: ParsedFile, call: Node) -> Iterator[_Told]:
    links = source.chain(call)
    given, name, line = links[-1].arguments or (), dotted(links), source.line(call)
    text = source.of(call)[:80]
    if links[-1].name in {"on", "once", "addListener"} and len(given) > 1:
        if dotted(links) == "Cypress.on" and source.name(given[0]) == "fail" and _is_idle(source, given[1]):
            yield "error", f"tests pass even if they fail: `{text}`", line
        elif source.name(given[0]) in _UNCAUGHT and _is_idle(source, given[1]):
            yield "warning", f"failures that nothing catches are passed over now: `{text}`", line
    elif name in {"process.exit", "Deno.exit"} and "".join(map(source.of, given)) in {"", "0"}:
        around = (each for each in ancestors(call) if each.type == "call_expression")
        if (outer := next(around, None)) is not None and source.chain(outer)[-1].name in _LAST:
            yield "warning", f"`{text}` ends the run with success, whatever its tests found", line
    elif links[-1].name in _ANSWERING and (stub := _SPY.search(source.of(call))) is not None:
        asserted = re.search(_ASSERTED.format(re.escape(stub["name"])), source.of(source.root))
        if asserted and _imports(source, stub["of"]):
            told = f"{stub['of']}.{stub['name']} is replaced in the tests that say what it does"
            yield "warning", told, line
    elif name == "expect.extend":
        for key, body in _members(source, given):
            if is_matcher(key):
                yield "error", f"{key} is replaced: what it asserts is up to this code", line
            elif set(_PASS.findall(body)) == {"true"}:
                yield "error", f"{key} {_PASSES}", line
    elif links[-1].name in {"overwriteMethod", "overwriteProperty", "overwriteChainableMethod"}:
        yield "warning", f"an assertion of chai is replaced: `{text}`", line
    else:
        repeated = links[-1].name in {"retryTimes", "retries"} and given and _MANY.match(source.of(given[0]))
        options = [each for each in given if each.type == "object"]
        declares = WORD.match(links[0].name) or links[-1].name in {"configure", "setConfig"}
        if repeated or (declares and any(_repeats(source, each) for each in options)):
            yield "warning", f"a test that fails is tried again until it passes: `{text.split('{')[0]}`", line


def _is_idle(source: ParsedFile, handler: Node) -> bool:
    if handler.type not in FUNCTIONS:
        return source.of(handler).rpartition(".")[2] in {"noop", "log", "warn", "error"}
    return bool(_IDLE.match(source.of(handler.child_by_field_name("body"))))


def _members(source: ParsedFile, given: Sequence[Node]) -> Iterator[tuple[str, str]]:
    for each in given:
        for member in each.named_children if each.type == "object" else ():
            name = member.child_by_field_name("key") or member.child_by_field_name("name")
            yield source.name(name) if name is not None else source.name(member), source.of(member)


def _repeats(source: ParsedFile, options: Node) -> bool:
    return any(
        source.name(pair.child_by_field_name("key")) in _RETRIES
        and _MANY.match(source.of(pair.child_by_field_name("value")))
        for pair in options.named_children
        if pair.type == "pair"
    )


def _assigned(source: ParsedFile, assignment: Node) -> Iterator[_Told]:
    left, right = (assignment.child_by_field_name(field) for field in ("left", "right"))
    name, line = source.of(left), source.line(assignment)
    if right is None:
        return
    if name == "process.exitCode" and source.of(right) == "0":
        yield "warning", f"`{source.of(assignment)}` has the run succeed, whatever its tests found", line
    method = _METHOD.match(name)
    if method is not None and (right.type in FUNCTIONS or _STAND_IN.match(source.of(right))):
        asserted = re.search(_ASSERTED.format(re.escape(method["name"])), source.of(source.root))
        if asserted and _imports(source, method["of"]):
            yield "warning", f"{name} is replaced in the tests that say what it does", line
    written = _WRITTEN_WITH.match(name)
    if written is None or not (WORD.match(written["name"]) or written["name"] in {"expect", "assert"}):
        return
    if right.type in FUNCTIONS or right.type == "object" or _NEVER_RUN.search(source.of(right)):
        yield "error", f"{written['name']} is replaced: what tests say with it is up to this code", line


def _imports(source: ParsedFile, name: str) -> bool:
    """Return True if a name comes from a file of the project."""
    imported = rf"(?:import|const|let|var)\b[^;=]{{0,400}}\b{re.escape(name)}\b[^;=]{{0,400}}(?:from|= ?require\() ?['\"]\.{{1,2}}/"
    return re.search(imported, source.of(source.root)) is not None
