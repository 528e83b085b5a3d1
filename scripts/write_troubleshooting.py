"""Write docs/troubleshooting.md from the messages in the code: python -m scripts.write_troubleshooting"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lopen.core.errors import ExitCode
from lopen.models.failures import Refusal, classify
from lopen.models.messages import ContextTooLong, Rejected, TransientFailure
from scripts.figures import ROOT, modules, room

PAGE = ROOT / "docs" / "troubleshooting.md"
ERRORS = {"LopenError": ExitCode.FAILED, "WrongUsage": ExitCode.USAGE, "PersonNeeded": ExitCode.PERSON_NEEDED}
MODEL_ERRORS = {"Rejected": ExitCode.FAILED, "Unavailable": ExitCode.PERSON_NEEDED}
"""Failures of a request to the model that reach a person, with the exit code that a run ends with."""
REFUSALS = (400, 401, 402, 403, 404, 413, 429, 500, 529)
NOT_SHOWN = {"ScriptedModel", "IllegalTransition", "IllegalMove"}  # faults of lopen's own
AFTER_A_PATH = {"UnreadableSource", "MissingSource"}  # their message begins with the path that they are given
SPOKEN = re.compile(r"[a-z]{2,} ")
USUAL_COMMANDS = {
    "gate": "lopen approve … --run",
    "question": "lopen answer … TEXT",
    "confirmation": "lopen confirm …",
    "budget": "lopen budget extend",
}
GAP = "…"  # in place of what a message names: a path, a number, another program's words

SECTIONS = {
    "Command line and settings": ("cli", "settings", "core", "application"),
    "Specifications and templates": ("specification", "workflow"),
    "The model and its endpoint": ("models",),
    "Runs": ("loop", "tools", "mcp", "judge", "guardrails"),
    "Git and work trees": ("git", "files"),
    "Sandbox": ("sandbox",),
    "State, budgets and circuits": ("store", "limits", "retention"),
    "Server and Claude Code": ("server", "claude_hooks"),
}
INTRODUCTION = """\
<!-- Written by scripts/write_troubleshooting.py from the code's messages. Change them there, then run it. -->

# Troubleshooting

Begin with these:

```
lopen status      # where it stands, why it stopped, and the command that continues
lopen doctor      # tries what lopen needs, and says how to fix what does not work
lopen log         # what happened, in order; -v adds the output of verifications
```

Search this page for a few words of the message you see. `…` stands for what differs: a path, a name, a number, or the words
of git or of the system. The last column is the [exit code](reference/exit-codes.md). Add `-v` to see more detail.

An `internal error in lopen` is a bug. The message names a file with the details; please report it with that file.

## Pauses

A run that pauses saves everything and ends with exit code 3. Its last line is the command that continues;
[pauses](reference/workflow.md#pauses) lists what it can wait for. A run that a signal interrupts is saved too and ends
with 130, 143 or 129 ([exit codes](reference/exit-codes.md)).

| Message | Command |
|---|---|
"""
CHECKS = """
## Specifications: lopen check

Each is printed with its file and line. Problems make `lopen check` exit with 1 and cannot be approved; warnings can.

| Message |
|---|
"""


@dataclass(frozen=True, order=True, slots=True)
class Message:
    """A message of an error with what to do about it and the exit code."""

    text: str
    advice: str
    code: int


class Code:
    """The syntax trees of lopen, and the classes of its errors with their exit codes."""

    def __init__(self) -> None:
        self.trees = {name: ast.parse(path.read_text("utf-8")) for name, path in modules().items()}
        self.codes: dict[str, ExitCode] = dict(ERRORS | MODEL_ERRORS)
        classes = [n for tree in self.trees.values() for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
        for _ in classes:  # a class may come before its base
            for found in classes:
                known = [
                    self.codes[b.id] for b in found.bases if isinstance(b, ast.Name) and b.id in self.codes
                ]
                if known:
                    self.codes.setdefault(found.name, known[0])

    def errors(self) -> dict[str, set[Message]]:
        """Return the messages of errors by room."""
        found: dict[str, set[Message]] = defaultdict(set)
        for module, tree in self.trees.items():
            for call, name, texts in _calls(tree):
                spoken = [_text(argument, texts) for argument in call.args]
                said = [
                    text for text in spoken if SPOKEN.search(text) and not text.startswith("lopen resume")
                ]
                if name not in self.codes or not said or name in NOT_SHOWN:
                    continue
                text = f"{GAP} {said[0]}" if name in AFTER_A_PATH else said[0]
                given = {k.arg: _text(k.value, texts) for k in call.keywords if k.arg}
                advice = given.get("hint", "") or given.get("command", "") or (spoken[2:] or [""])[0]
                found[room(module)].add(Message(text, "" if advice == GAP else advice, int(self.codes[name])))
        return found

    def pauses(self) -> set[Message]:
        """Return the messages of pauses with their commands."""
        found = set()
        for tree in self.trees.values():
            for call, name, texts in _calls(tree):
                place = {"Pause": 1, "gate_pause": 1, "confirmation_pause": 3}.get(name)
                if place is None or len(call.args) <= place:
                    continue
                kind = _text(call.args[0], texts) if name == "Pause" else name.removesuffix("_pause")
                command = _text(call.args[2], texts) if name == "Pause" else GAP
                command = USUAL_COMMANDS.get(kind, "") if command == GAP else command
                found.add(Message(_text(call.args[place], texts), command, 3))
        return {message for message in found if SPOKEN.search(message.text)}

    def diagnostics(self) -> set[str]:
        """Return the messages of `lopen check`."""
        every = (
            _text(call.args[1], texts)
            for module, tree in self.trees.items()
            if room(module) == "specification"
            for call, name, texts in _calls(tree)
            if name == "Diagnostic" and len(call.args) > 1
        )
        return {text for text in every if SPOKEN.search(text)}


def answers() -> Iterator[Message]:
    """Yield what lopen says of the endpoint's refusals."""
    for status in REFUSALS:
        failure = classify(Refusal(status, "", GAP), model=GAP, now=datetime.now(UTC))
        again = "lopen tries again by itself, then the fallback models"
        hints = {
            TransientFailure: again,
            ContextTooLong: "lopen starts the iteration again with a smaller prompt",
        }
        advice = failure.hint if isinstance(failure, Rejected) else hints[type(failure)]
        yield Message(failure.message, advice, 1 if isinstance(failure, Rejected) else 3)


def _calls(tree: ast.Module) -> Iterator[tuple[ast.Call, str, Mapping[str, ast.expr]]]:
    """Yield each call with the name of what it calls and the texts that names stand for there.

    In a class, `super().__init__` has the name of the class.
    """

    def visit(node: ast.AST, owner: str, texts: Mapping[str, ast.expr]) -> Iterator[Any]:
        if isinstance(node, ast.FunctionDef):
            texts = {**texts, **_assigned(ast.walk(node))}
        if isinstance(node, ast.ClassDef):
            owner = node.name
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            yield node, owner if ast.unparse(node.func) == "super().__init__" else name, texts
        for child in ast.iter_child_nodes(node):
            yield from visit(child, owner, texts)

    return visit(tree, "", _assigned(tree.body))


def _assigned(nodes: Iterable[ast.AST]) -> Mapping[str, ast.expr]:
    """Return what names are first set to, where that is text."""
    found: dict[str, ast.expr] = {}
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(
            node.value, ast.Constant | ast.JoinedStr
        ):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name):
                found.setdefault(target.id, node.value)
    return found


def _text(node: ast.expr, texts: Mapping[str, ast.expr]) -> str:
    """Return the text of an expression, with gaps for what is known only when it runs."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return re.sub(rf"{GAP}({GAP}| {GAP})+", GAP, "".join(_text(value, texts) for value in values))
        case ast.FormattedValue(value=value):
            return _text(value, texts) if isinstance(value, ast.Name) else GAP
        case ast.Name(id=name) if name in texts:
            return _text(texts[name], {k: v for k, v in texts.items() if k != name})
        case ast.IfExp(body=body, orelse=otherwise):
            both = [_text(body, texts), _text(otherwise, texts)]
            return " / ".join(text for text in both if text not in ("", GAP)) or GAP
        case _:
            return GAP


def page() -> str:
    """Return the whole page."""
    code = Code()
    lines = [INTRODUCTION.rstrip("\n")]
    lines += [f"| {_cell(m.text)} | {_cell(m.advice)} |" for m in sorted(code.pauses())]
    errors = code.errors()
    errors["models"] |= set(answers())
    for title, rooms in SECTIONS.items():
        lines += ["", f"## {title}", "", "| Message | What to do | Exit |", "|---|---|---|"]
        messages = sorted({message for name in rooms for message in errors.get(name, ())})
        lines += [f"| {_cell(m.text)} | {_cell(m.advice)} | {m.code} |" for m in messages]
    lines += [CHECKS.rstrip("\n"), *(f"| {_cell(text)} |" for text in sorted(code.diagnostics()))]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Return the text as a cell of a table in which no character is markup."""
    plain = " ".join(text.split())
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", plain)


def rooms_without_section() -> set[str]:
    """Return the rooms whose messages are in no section."""
    return set(Code().errors()) - {name for rooms in SECTIONS.values() for name in rooms}


def main() -> None:
    """Write the page."""
    Path(PAGE).write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
