"""The history of a session's tool calls as running counts.

Each call is counted once, when it is announced and when it ends. The rules of the circuit breaker
(`limits.circuits`) and of the guardrails (`habits`) read these counts. All of them are bounded. Two calls are
the same if tool and arguments are, after normalisation of blanks and paths; what only words or times a call does not
count. A signature is a hash, so that no argument lies in the store.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from posixpath import normpath
from typing import Any, Literal, TypeVar

V = TypeVar("V")
FindingKind = Literal["circle", "same_failures", "reread", "retry", "untested_edits"]

READS = frozenset({"read_file", "read_spec"})
LOOKS = READS | {"list_files", "search_files"}
RUN = "run_command"
CALLS_KEPT = 50  # signatures of each kind
EDITED_KEPT = 200
TESTS_KEPT = 20  # failing tests, by name
FINDINGS_KEPT = 10
PATH_LENGTH = 200


@dataclass(frozen=True, slots=True)
class WastefulHabit:
    """A wasteful habit: its kind, the resource, how often it was seen, and the instruction that corrects it."""

    kind: FindingKind
    resource: str
    count: int
    correction: str


@dataclass(frozen=True, slots=True)
class CallEnd:
    """The end of a tool call.

    `signature` and `nonce` identify the call. `resource` is its path, section, pattern or command line, for messages.
    `content_hash` is of the text read, printed or written, None where unknown. `exit_code` is None where no command
    ended. `failed_tests` are named by a test run. `edited` are the paths that the call changed. `tree_before` and
    `tree` are ids of the work tree before and after a command that failed, earlier or now; each costs a process.
    `agent` is the sub-agent that made the call. `progressed`: the call polls, and its output has changed.
    """

    tool: str
    signature: str
    ok: bool = True
    exit_code: int | None = None
    tree: str = ""
    nonce: str = ""
    resource: str = ""
    content_hash: str | None = None
    edited: tuple[str, ...] = ()
    tree_before: str = ""
    is_test_run: bool = False
    agent: str = ""
    progressed: bool = False
    failed_tests: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        """Return the mark that identifies the call."""
        return self.nonce or self.signature

    @property
    def is_run(self) -> bool:
        """Tell whether the call runs a command: the model's own, or one of the specification's."""
        return self.tool == RUN or (self.tool.startswith("verify_") and not self.tool.endswith("_completion"))

    @property
    def failed(self) -> bool:
        """Tell whether the call could not be made, or its command failed."""
        return not self.ok or self.exit_code not in (None, 0)

    @property
    def changed_tree(self) -> bool:
        """Tell whether the call changed the work tree."""
        return bool(self.edited) or bool(self.tree_before and self.tree and self.tree_before != self.tree)

    @property
    def tested(self) -> bool:
        """Tell whether the tests ran, with any result."""
        ran = self.ok or self.exit_code is not None
        return ran and (self.is_test_run or self.tool == "verify_tests")


@dataclass(frozen=True, slots=True)
class CallHistory:
    """Counts over the calls of one session.

    `tree` numbers the known states of the work tree, `tree_id` is its id after the last failed command.
    `unchanged`: signature → (content, how often in a row in this conversation).
    `failing`: signature → (tree after the failure, failures in a row over an unchanged tree).
    `failing_tests`: name → failing test runs in a row; a passing test run clears them. `tests_known`: the project had
    tests before the present turn, or they ran.
    """

    task: str = ""
    iteration_count: int = 0  # calls of the task since the last passing verify command
    history: tuple[str, ...] = ()  # signatures, the latest last
    subject: str = ""  # of the conversation: a task's id, or a planning step
    tree: int = 0
    tree_id: str = ""
    unchanged: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    failing: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    edited: tuple[str, ...] = ()  # since the last test run; before tests are known, in this turn
    tests_known: bool = False
    failing_tests: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[WastefulHabit, ...] = ()  # in this conversation

    def in_task(self, task: str) -> CallHistory:
        """Count iterations from nothing where the task changed."""
        return self if task == self.task else replace(self, task=task, iteration_count=0)

    def announced(self, signature: str, *, of_task: bool, kept: int = CALLS_KEPT) -> CallHistory:
        """Count a call that is about to be made. `of_task`: it counts towards the task's iterations."""
        count = self.iteration_count + of_task
        return replace(self, iteration_count=count, history=(*self.history, signature)[-kept:])

    def ended(self, end: CallEnd, kept: int = CALLS_KEPT) -> CallHistory:
        """Count the end of a call. A change that no call reported is found by the ids of the work tree."""
        seen = end.tree_before or end.tree
        before = self.tree + (1 if seen and self.tree_id and seen != self.tree_id else 0)
        after = before + (1 if end.changed_tree else 0)
        return replace(
            self,
            tree=after,
            tree_id=end.tree or self.tree_id,
            unchanged=self._with_content(end, after, kept),
            failing=self._with_failure(end, before, after, kept),
            edited=self._with_edits(end),
            tests_known=self.tests_known or end.tested,
            failing_tests=self._with_failing_tests(end),
            findings=tuple(f for f in self.findings if not (end.tested and f.kind == "untested_edits")),
        )

    def _with_content(self, end: CallEnd, tree: int, kept: int) -> Mapping[str, tuple[str, int]]:
        """Unknown content neither extends a row nor ends it. Output is compared within one state of the tree."""
        if end.content_hash is None or (end.tool not in LOOKS and end.tool != RUN):
            return self.unchanged
        content = f"{tree}:{end.content_hash}" if end.tool == RUN else end.content_hash
        before, row = self.unchanged.get(end.signature, ("", 0))[:2]
        counts = (content, row + 1) if before == content else (content, 1)
        return _latest({**_without(self.unchanged, end.signature), end.signature: counts}, kept)

    def _with_failure(
        self, end: CallEnd, before: int, after: int, kept: int
    ) -> Mapping[str, tuple[int, int]]:
        """A success, or a change to the work tree by another call, ends a command's row of failures."""
        if not end.is_run:
            return self.failing
        others = _without(self.failing, end.signature)
        if not end.failed:
            return others
        tree, row = self.failing.get(end.signature, (before, 0))
        return _latest({**others, end.signature: (after, row + 1 if tree == before else 1)}, kept)

    def _with_edits(self, end: CallEnd) -> tuple[str, ...]:
        if end.tested:
            return ()
        new = dict.fromkeys(path for path in map(_short_path, end.edited) if path not in self.edited)
        return (*self.edited, *new)[:EDITED_KEPT]

    def _with_failing_tests(self, end: CallEnd) -> Mapping[str, int]:
        if not end.tested:
            return self.failing_tests
        names = end.failed_tests or (end.tool,) if end.failed else ()
        return {name: self.failing_tests.get(name, 0) + 1 for name in map(_short_path, names[:TESTS_KEPT])}

    def unchanged_in_row(self, signature: str) -> int:
        """Return how often in a row the call gave the same content in this conversation."""
        return self.unchanged.get(signature, ("", 0))[1]

    def failures_in_row(self, signature: str) -> int:
        """Return how often in a row the command failed over an unchanged work tree."""
        return self.failing.get(signature, (0, 0))[1]

    def conversation(self, subject: str, shown: Collection[str] = ()) -> CallHistory:
        """Begin a new conversation about `subject`, whose context holds nothing that was read before but `shown`.

        `shown`: paths of the files that its prompt carries whole, whose rows of reads go on.
        Failing commands are facts of the work tree and stay; untested edits stay those of one task. A process that
        continues an iteration must not call this.
        """
        edited = self.edited if subject == self.subject else ()
        kept = {signature("read_file", {"path": path}) for path in shown}
        return replace(
            self,
            subject=subject,
            unchanged={call: row for call, row in self.unchanged.items() if call in kept},
            edited=edited,
            findings=tuple(f for f in self.findings if edited and f.kind == "untested_edits"),
        )

    def found(self, habits: tuple[WastefulHabit, ...]) -> CallHistory:
        """Add findings; a higher count replaces the lower count of the same habit."""
        renewed = {(habit.kind, habit.resource) for habit in habits}
        others = [habit for habit in self.findings if (habit.kind, habit.resource) not in renewed]
        return replace(self, findings=(*others, *habits)[-FINDINGS_KEPT:]) if habits else self


def _without(counts: Mapping[str, V], signature: str) -> dict[str, V]:
    return {call: count for call, count in counts.items() if call != signature}


def _latest(counts: Mapping[str, V], kept: int) -> Mapping[str, V]:
    return dict(list(counts.items())[-kept:])


def _short_path(path: str) -> str:
    """Return the path; cut a long one and add a digest of the whole."""
    if len(path) <= PATH_LENGTH:
        return path
    digest = blake2b(path.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{path[: PATH_LENGTH - len(digest) - 1]}\0{digest}"


LONGEST_PATH = 4_096
# Of a call that runs a command: how it is worded, how long it may take, where it waits
_COMMAND_SAYS = frozenset({"description", "timeout", "timeout_s", "run_in_background"})
_AGENT_SAYS = frozenset({"description"})  # a sub-agent's title beside its prompt


def signature(tool: str, arguments: Any) -> str:
    """`tool` and 16 hex digits over its normalised arguments."""
    text = json.dumps(_normal(_effective(arguments), 0), sort_keys=True, ensure_ascii=False, default=str)
    return f"{tool}:{blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def _effective(arguments: Any) -> Any:
    """Return the arguments that change the call's effect. In other tools a `description` may be written content."""
    if not isinstance(arguments, dict):
        return arguments
    idle = _COMMAND_SAYS if "command" in arguments else _AGENT_SAYS if "prompt" in arguments else frozenset()
    return {name: value for name, value in arguments.items() if name not in idle} if idle else arguments


def _normal(value: Any, depth: int) -> Any:
    if depth > 50:  # hostile nesting; what lies deeper counts as equal
        return None
    if isinstance(value, str):
        return _normal_text(value)
    if isinstance(value, dict):
        return {str(k): _normal(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_normal(v, depth + 1) for v in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _normal_text(text: str) -> str:
    """Runs of blanks as one, outer blanks gone, every word that is a path in its shortest form."""
    words = text.split()
    if len(words) > 64 or len(text) > LONGEST_PATH:  # a file's content: blanks only
        return " ".join(words)
    return " ".join(_normal_path(word) if "/" in word and "://" not in word else word for word in words)


def _normal_path(word: str) -> str:
    path = normpath(word)
    return path[1:] if path.startswith("//") else path
