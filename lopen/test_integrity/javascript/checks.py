"""What a JavaScript test checks: `expect` chains, `assert` calls, the `t` of node and tap, helpers by name."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lopen.test_integrity.bindings import is_constant
from lopen.test_integrity.conditions import truth
from lopen.test_integrity.flow import Flow, Helpers
from lopen.test_integrity.javascript.ranks import cypress_checks, is_core_matcher
from lopen.test_integrity.javascript.reading import JavaScriptNames, Reader
from lopen.test_integrity.javascript.waiting import (
    is_async,
    is_awaited,
    is_caught,
    must_be_awaited,
    outermost_call,
)
from lopen.test_integrity.place import Place
from lopen.test_integrity.suite import EXACT, NO_ERROR, PRESENT, Check, guard, words
from lopen.test_integrity.syntax import FUNCTIONS, LOOPS, Link, ParsedFile, ancestors, may_fail

if TYPE_CHECKING:
    from lopen.test_integrity.syntax import Node

EXPECTING = re.compile(rb"expect|[aA]ssert|should|[cC]heck|[vV]erify|ensure|\bthrow\b|\bt\.")
_HELPER = re.compile(r"^(?:assert|expect|check|verify|ensure|should)[A-Z_]\w*$")
_ASSERTING = re.compile(r"^(?:assert|expect|should)[A-Z_]")
_THROWING = frozenset({"toThrow", "toThrowError", "throw", "throws", "rejects"})
_SKIPPERS = frozenset({"this", "t", "ctx", "context", "test", "it", "testInfo"})
_TIMERS = frozenset(
    {"setTimeout", "setImmediate", "nextTick", "queueMicrotask", "setInterval", "requestAnimationFrame"}
)
_SETTLED = re.compile(rb"\b(?:done|resolve|reject|cb|next|end)\b\s*[(,)]")
_LISTENING = words("on once addListener addEventListener subscribe connect")
_PROMISING = words("then catch finally waitFor waitForElementToBeRemoved waitUntil")
_NO_ERROR = re.compile(
    r"expect\((?:err|error|e)\)\.(?:toBe(?:Null|Undefined|Falsy)\(|not\.|to\.(?:not\.|be\.(?:null|undefined)|equal\(null))"
    r"|(?:assert|t|should)\.(?:ifError|error|notOk|falsy|isNull|isUndefined|not\.exist)\((?:err|error|e)[,)]"
)
_LISTED = re.compile(
    r"(?:Object|Array)\.\w+\(|[\w$]+\.(?:entries|keys|values)\(\)$|\[|(?:fs\.)?read\w*\(|JSON\.parse\(|require\("
)
_DELAYED = re.compile(r"\bawait (?:delay|sleep|wait|timeout|setTimeout)\(")
_DELAYS = frozenset({"delay", "sleep", "wait", "timeout", "setTimeout"})
_MATCHER = re.compile(r"\)\.(?:not\.)?(to[A-Z]\w+)\(")
_DRIVEN = re.compile(rb"[tT]imers?\b|\btick\b|\bclock\b|\bawait\b|fakeAsync")


class JavaScriptBody(Flow):
    """The walk through the body of a test, a helper or a hook."""

    def __init__(self, source: ParsedFile, root: Node, helpers: Helpers, names: JavaScriptNames) -> None:
        super().__init__(source, root, helpers)
        self.names = names
        given = root.child_by_field_name("parameters") or root.child_by_field_name("parameter")
        self.parameters = frozenset(re.findall(r"[\w$]+", source.of(given)))
        self.reader = Reader(source, names, self.parameters)
        self.finished = False
        self.straight = False  # a check stands in no loop and no callback
        self.settles = bool(self.parameters & {"done", "cb", "callback", "end", "next"})

    def follow(self, body: Node | None) -> None:
        """Follow the function's body, a block or an expression."""
        if body is not None:
            self.walk(body, Place())

    def tables(self) -> Mapping[str, Node]:
        return self.names.tables

    def other(self, node: Node, place: Place) -> bool:
        """A property that asserts: `expect(x).to.be.true`. What is bound to a name is remembered."""
        if node.type == "variable_declarator" and (value := node.child_by_field_name("value")) is not None:
            self.reader.bound[self.source.of(node.child_by_field_name("name"))] = value
        if node.type == "switch_statement":
            self._switch(node, place)
            return True
        if node.type != "member_expression":
            return False
        links = self.source.chain(node)
        found = self.reader.read(node, links)
        if found is None or links[-1].arguments is not None:
            return False
        self.check(found, place)
        return True

    def _nested(self, node: Node, place: Place) -> None:
        """A function that stands alone as a statement runs nothing."""
        idle = node.parent is not None and node.parent.type == "expression_statement"
        super()._nested(node, place.worse("unreachable") if idle else place)

    def _thrown(self, node: Node, place: Place) -> None:
        """A function that must not be called throws: that is an assertion too."""
        super()._thrown(node, place)
        again = node.named_child_count and node.named_children[0].type == "identifier"  # what was caught
        if not place.condition and not again and not self.ends_test(node):
            self.check(Check(self.source.of(node), "a call", EXACT, self.source.line(node)), place)

    def _switch(self, node: Node, place: Place) -> None:
        """A `switch` whose cases check something, and which checks nothing where none of them applies."""
        before, value = len(self.checks), self.source.of(node.child_by_field_name("value"))
        self.block(node, place)
        body = node.child_by_field_name("body")
        last = body.named_children[-1] if body is not None and body.named_child_count else None
        if last is None or last.type != "switch_default" or not may_fail(self.source, last):
            guard(self.checks, before, value)

    def _loop(self, node: Node, place: Place) -> None:
        before = len(self.checks)
        super()._loop(node, place)
        self._over(node.child_by_field_name("right"), before)

    def arguments(self, links: Sequence[Link], place: Place) -> None:
        before = len(self.checks)
        super().arguments(links, place)
        heard = self.checks[before:] if links[-1].name in _LISTENING else []
        if heard and not self.settles and not self.counted():  # it is called if the code under test does
            self.checks[before:] = [replace(c, rank=max(c.rank - 1, PRESENT)) for c in heard]
        if links[-1].name == "forEach" and links[-1].arguments:
            member = next(ancestors(links[-1].node))
            self._over(member.child_by_field_name("object"), before)

    def _over(self, table: Node | None, before: int) -> None:
        """Make what is checked for each part of something that the code made less, unless that was checked before."""
        if table is None or len(self.checks) == before:
            return
        made = self.reader.bound.get(self.source.of(table), table)
        text = self.source.of(made)
        if made.type in {"call_expression", "await_expression"} and not _LISTED.match(text):
            known = {self.source.of(table), text}
            if any(name in check.text for check in self.checks[:before] for name in known):
                return
            for at, check in enumerate(self.checks[before:], before):
                if check.kind == "real":
                    said = f"{check.text} for each of {self.source.of(table)}"
                    self.checks[at] = replace(check, text=said, rank=max(check.rank - 1, PRESENT))

    def condition(self, branch: Node) -> str:
        """A branch's condition; a constant of the file in it stands for its value."""
        text = super().condition(branch)
        value = self.names.tables.get(text.lstrip("!"))
        known = (
            value is not None and value.type in {"true", "false", "null", "undefined"} and is_constant(value)
        )
        return text.replace(text.lstrip("!"), self.source.of(value)) if known else text

    def call(self, node: Node, links: Sequence[Link], place: Place) -> bool:
        if name := self.exit_name(links):
            if not place.condition and self.ends_test(node):
                self.skip(name, node, place)
            return True
        if [link.name for link in links] == ["Promise", "allSettled"]:
            self.arguments(links, place.worse("swallowed"))
            return True
        if self._skips(links):
            self._skip(node, links, place)
            return True
        if len(links) == 1 and links[0].name == "done" in self.parameters and not place.condition:
            self.finished |= self.ends_test(node)
        chained = links[-1].name in {"should", "and"} and [a.type for a in links[-1].arguments or ()][:1] == [
            "string"
        ]
        if links[0].name == "cy" or chained:
            for each in cypress_checks(self.source, node, links):
                self.check(each, place)
            for link in links[1:]:  # the project's own commands
                said = f"{link.name}({', '.join(map(self.source.of, link.arguments or ()))})"
                own = Check(said, said, EXACT, self.source.line(node))
                if link.name in self.helpers:
                    self.helper(link.name, own, place)
                elif link.arguments is not None and _ASSERTING.match(link.name):
                    self.check(own, place)
            self.arguments(links, place)
            return True
        found = self.reader.read(node, links)
        if found is not None:
            if _NO_ERROR.match(found.text):
                found = replace(found, subject=NO_ERROR)
            self.straight |= self._is_straight(node)
            place = place.worse("swallowed" if is_caught(self.source, links) else "real")
            waits = must_be_awaited(
                links, playwright=self.names.playwright or "page" in self.parameters
            ) and not self._is_awaited(node)
            self.asserted(found, links, place.worse("unawaited") if waits else place)
            return True
        name = self._called_helper(links)
        if name:
            first = next((self.source.of(link.arguments[0]) for link in links if link.arguments), "")
            text = self.source.of(node)
            check = Check(text, first or text, EXACT, self.source.line(node))
            if name in self.helpers:
                self.helper(name, check, place)
            else:
                self.check(check, place)
        return False

    def _is_straight(self, node: Node) -> bool:
        inside = itertools.takewhile(lambda parent: parent != self.root, ancestors(node))
        return self.straight or not any(each.type in FUNCTIONS or each.type in LOOPS for each in inside)

    def _called_helper(self, links: Sequence[Link]) -> str:
        """The name of the helper that a call calls, be it one by its name alone."""
        plain = len(links) == 1 or (len(links) == 2 and links[0].arguments is None)
        name = links[-1].name
        if links[-1].arguments is None:
            return ""
        named = bool(_HELPER.match(name))
        own = len(links) == 1 or (plain and _ASSERTING.match(name))
        return name if (name in self.helpers and (plain or named)) or (named and own) else ""

    def exit_name(self, links: Sequence[Link]) -> str:
        """A call that ends the process with success, as text; "" for any other."""
        names = ".".join(link.name for link in links)
        if names not in {"process.exit", "process.reallyExit", "Deno.exit"} or links[-1].arguments is None:
            return ""
        code = "".join(self.source.of(argument) for argument in links[-1].arguments)
        return f"{names}({code})" if code in {"", "0"} else ""

    def _skips(self, links: Sequence[Link]) -> bool:
        first, last = links[0], links[-1]
        if last.arguments is None or any(argument.type in FUNCTIONS for argument in last.arguments[1:]):
            return False
        if len(links) == 1:
            return first.name == "pending" or (
                first.name in {"skip", "fixme"} and first.name in self.parameters
            )
        known = first.name in _SKIPPERS or first.name in self.parameters
        return (
            len(links) == 2
            and (known or (last.name == "fail" and first.name == "test"))
            and last.name in {"skip", "todo", "fixme", "fail"}
            and not (last.name == "fail" and first.name != "test")
            and first.arguments is None
        )

    def _skip(self, node: Node, links: Sequence[Link], place: Place) -> None:
        name = ".".join(link.name for link in links)
        given = links[-1].arguments or ()
        if given and given[0].type not in {"string", "template_string"} and len(links) > 1:
            condition = self.source.of(given[0])
            place = place.under(condition, truth(condition))
        self.skip(name, node, place)

    def _is_awaited(self, node: Node) -> bool:
        return self.settles or is_awaited(self.source, node)

    def callback(self, links: Sequence[Link], index: int, node: Node, place: Place) -> Place:
        name = links[index].name
        if links[0].name == "cy":
            return place  # Cypress runs its commands in their order, and waits for them
        if self.finished:
            return place.worse("unawaited")  # the test has said that it is done
        names = {link.name: link for link in links}
        last = links[-1]
        throwing = (
            last.name in _THROWING
            and "not" not in names
            and len(last.arguments or ()) <= (1 if name == last.name else 0)
        )
        if name in {"then", "finally"} and is_caught(self.source, links[index + 1 :]):
            return place.worse("swallowed")
        inner = self.source.of(node)
        tried = _MATCHER.findall(inner)  # a matcher of the project's own is what the test is about
        own = bool(tried) and not any(map(is_core_matcher, tried))
        if (
            throwing
            and (name == "expect" or last is links[index])
            and "doesNotThrow" not in names
            and not own
        ):
            return place.worse("swallowed")
        at_once = index == 0 and not name
        if at_once and _DELAYED.search(inner):
            late = not _DRIVEN.search(self.source.code, node.end_byte, self.root.end_byte)
        elif (name in _PROMISING and links[0].name not in _DELAYS) or at_once:
            late = (name != "" or is_async(node)) and not self._is_awaited(outermost_call(node))
        elif name in _TIMERS or links[0].name in _DELAYS:
            late = not _DRIVEN.search(self.source.code, self.root.start_byte, self.root.end_byte)
        else:
            late = name == "forEach" and is_async(node)
        settled = self.settles or _SETTLED.search(self.source.code, node.start_byte, node.end_byte)
        return place.worse("unawaited") if late and not settled else place
