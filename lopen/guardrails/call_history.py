"""The log of a session's tool calls, with what is counted of them beside it.

Each call is logged once, when it is announced, and its entry is completed when it ends. The rules of the circuit
breaker (`limits.circuits`) and of the guardrails (`habits`) count over this one log, which keeps the newest calls of each
kind. Two calls are the same if tool and arguments are, after normalisation of blanks and paths; an argument that only describes a
call, or limits its time, does not count. A signature is a hash, so that no argument lies in the store.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from posixpath import normpath
from typing import Any, Literal

HabitKind = Literal["circle", "retry", "untested_edits"]

READS = frozenset({"read_file", "read_spec"})
LOOKS = READS | {"list_files", "search_files"}
RUN = "run_command"
CALLS_KEPT = 50  # of each kind
EDITED_KEPT = 200
HABITS_KEPT = 10
PATH_LENGTH = 200


@dataclass(frozen=True, slots=True)
class WastefulHabit:
    """A wasteful habit: its kind, the file or command that it is about, and how often it was seen."""

    kind: HabitKind
    resource: str
    count: int


@dataclass(frozen=True, slots=True)
class CallEnd:
    """The end of a tool call.

    `signature` and `nonce` identify the call. `resource` is its path, section, pattern or command line, for messages.
    `content_hash` is of the text read, printed or written, None where unknown. `exit_code` is None where no command
    ended. `edited` are the paths that the call changed. `tree_before` and `tree` are ids of the work tree before and
    after a command that failed, earlier or now; each costs a process. `agent` is the sub-agent that made the call.
    `progressed`: the call polls, and its output has changed.
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
class LoggedCall:
    """A call as it was announced (the first eight fields), and what its end added.

    `mark` identifies the call, `turn` numbers its agent's turns, `label` names this one, `at` is in seconds since the
    epoch. `subject` is the tool, or the file of a call that writes one. `content` is a hash of its result in this
    conversation, `unchanged` the number of calls in a row with that result. `tree` numbers the work tree as it left it, `failures` counts failures in a row over an unchanged tree.
    `failed`: the circuit counts it as a failure. `past`: it was made before the last cooldown, and counts only in a row
    of identical calls. `ends_row`: such a row ends here, as the call polls and gave something new, or as a person said.
    """

    mark: str
    signature: str
    kind: str = "tool"
    agent: str = ""
    turn: int = 0
    label: str = ""
    at: float = 0.0
    subject: str = ""
    past: bool = False
    content: str = ""
    unchanged: int = 0
    tree: int | None = None
    failures: int = 0
    failed: bool = False
    ends_row: bool = False

    @property
    def tool(self) -> str:
        """The tool's name."""
        return self.signature.partition(":")[0]


@dataclass(frozen=True, slots=True)
class CallHistory:
    """The log of one session's calls, the latest last, and counts that outlast it.

    `tree` numbers the known states of the work tree, `tree_id` is its id after the last failed command.
    `tests_known`: the project had tests before the present turn, or they ran.
    """

    task: str = ""
    iteration_count: int = 0  # calls of the task since the last passing verify command
    log: tuple[LoggedCall, ...] = ()
    subject: str = ""  # of the conversation: a task's id, or a planning step
    tree: int = 0
    tree_id: str = ""
    edited: tuple[str, ...] = ()  # since the last test run; before tests are known, in this turn
    tests_known: bool = False
    habits: tuple[WastefulHabit, ...] = ()  # in this conversation

    def in_task(self, task: str) -> CallHistory:
        """Count iterations from nothing where the task changed."""
        return self if task == self.task else replace(self, task=task, iteration_count=0)

    def announced(self, call: LoggedCall, *, of_task: bool = False, kept: int = CALLS_KEPT) -> CallHistory:
        """Log a call that is about to be made. `of_task`: it counts towards the task's iterations."""
        log = _newest((*self.log, call), kept)
        return replace(self, iteration_count=self.iteration_count + of_task, log=log)

    def turn(self, agent: str, label: str) -> int:
        """Return the number of an agent's turn; a new label is a new turn. Lopen's own calls are in no turn."""
        last = next((c for c in reversed(self.log) if c.agent == agent and c.kind != "oracle"), None)
        return last.turn + (last.label != label) if last else 0

    def call(self, mark: str) -> LoggedCall | None:
        """Return the newest call of that mark."""
        return next((call for call in reversed(self.log) if call.mark == mark), None)

    def changed(self, call: LoggedCall | None, **fields: Any) -> CallHistory:
        """Return the history with fields of a logged call changed."""
        return replace(self, log=tuple(replace(c, **fields) if c is call else c for c in self.log))

    def ended(self, end: CallEnd) -> CallHistory:
        """Complete a call's entry. A change that no call reported is found by the ids of the work tree."""
        seen = end.tree_before or end.tree
        before = self.tree + (1 if seen and self.tree_id and seen != self.tree_id else 0)
        after = before + (1 if end.changed_tree else 0)
        row = self._failures(end, before)
        told = self.changed(self.call(end.mark), tree=after, failures=row, **self._content(end, after))
        return replace(
            told,
            tree=after,
            tree_id=end.tree or self.tree_id,
            edited=self._edited(end),
            tests_known=self.tests_known or end.tested,
            habits=tuple(h for h in self.habits if not (end.tested and h.kind == "untested_edits")),
        )

    def _content(self, end: CallEnd, tree: int) -> dict[str, Any]:
        """Unknown content neither extends a row nor ends it. Output is compared within one state of the tree."""
        if end.content_hash is None or (end.tool not in LOOKS and end.tool != RUN):
            return {}
        content = f"{tree}:{end.content_hash}" if end.tool == RUN else end.content_hash
        before = next((call for call in self._same(end.signature) if call.content), None)
        row = before.unchanged + 1 if before and before.content == content else 1
        return {"content": content, "unchanged": row}

    def _failures(self, end: CallEnd, tree: int) -> int:
        """A success, or a change to the work tree by another call, ends a command's row of failures."""
        if not end.is_run or not end.failed:
            return 0
        before = next((call for call in self._same(end.signature) if call.tree is not None), None)
        return before.failures + 1 if before and before.failures and before.tree == tree else 1

    def _same(self, signature: str) -> Iterator[LoggedCall]:
        """Yield the logged calls of a signature, the latest first."""
        return (call for call in reversed(self.log) if call.signature == signature)

    def _edited(self, end: CallEnd) -> tuple[str, ...]:
        if end.tested:
            return ()
        new = dict.fromkeys(path for path in map(_short_path, end.edited) if path not in self.edited)
        return (*self.edited, *new)[:EDITED_KEPT]

    def failures_in_row(self, signature: str) -> int:
        """Return how often in a row the command failed over an unchanged work tree."""
        return next((call.failures for call in self._same(signature) if call.tree is not None), 0)

    def conversation(self, subject: str, shown: Collection[str] = ()) -> CallHistory:
        """Begin a new conversation about `subject`, whose context holds nothing that was read before but `shown`.

        `shown`: paths of the files that its prompt carries whole, whose rows of reads go on.
        Failing commands are facts of the work tree and stay; untested edits belong to one task. A process that
        continues an iteration must not call this.
        """
        edited = self.edited if subject == self.subject else ()
        kept = {signature("read_file", {"path": path}) for path in shown}
        return replace(
            self,
            subject=subject,
            log=tuple(c if c.signature in kept else replace(c, content="", unchanged=0) for c in self.log),
            edited=edited,
            habits=tuple(h for h in self.habits if edited and h.kind == "untested_edits"),
        )

    def found(self, habits: tuple[WastefulHabit, ...]) -> CallHistory:
        """Add habits; a higher count replaces the lower count of the same habit."""
        renewed = {(habit.kind, habit.resource) for habit in habits}
        others = [habit for habit in self.habits if (habit.kind, habit.resource) not in renewed]
        return replace(self, habits=(*others, *habits)[-HABITS_KEPT:]) if habits else self


def _newest(log: Sequence[LoggedCall], kept: int) -> tuple[LoggedCall, ...]:
    """Return the newest calls of each kind: many calls of one kind push out none of another."""
    counts: Counter[str] = Counter()
    newest = []
    for call in reversed(log):
        counts[call.kind] += 1
        if counts[call.kind] <= kept:
            newest.append(call)
    return tuple(reversed(newest))


def _short_path(path: str) -> str:
    """Return the path; cut a long one and add a digest of the whole."""
    if len(path) <= PATH_LENGTH:
        return path
    digest = blake2b(path.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{path[: PATH_LENGTH - len(digest) - 1]}\0{digest}"


def subject_of(tool: str, written: str, arguments: Mapping[str, Any]) -> str:
    """Return what a tool is called over and over for: itself, or the file and the place in it that the call writes."""
    if not written:
        return tool
    place = arguments.get("old_text", arguments.get("old_string"))
    return signature(tool, {"path": written, "place": place})


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
