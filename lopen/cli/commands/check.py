"""`lopen check`: report the problems of specifications as `path:line: message`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lopen.application.command_context import CommandContext
from lopen.base.errors import ExitCode, LopenError
from lopen.cli.command import command
from lopen.cli.parameters import OptionalModule

if TYPE_CHECKING:
    from lopen.documents.spec import Problem


@dataclass(frozen=True, slots=True)
class SpecProblem:
    """A problem or a warning of a specification."""

    severity: Literal["problem", "warning"]
    line: int
    message: str


@command
def check(context: CommandContext, module: OptionalModule = None) -> ExitCode:
    """Validate specifications. Exit code 1: a specification has a problem (warnings do not count)."""
    from lopen.documents.spec import misnamed_folders, spec_path

    problems = warnings = 0
    strays = [] if module else list(misnamed_folders(context.root))
    modules = _modules(context.root, module, strays)
    for stray in strays:
        problems += 1
        found = SpecProblem("problem", stray.line, stray.message)
        _tell(context, "", stray.path.relative_to(context.root), found)
    for name in modules:
        path = spec_path(context.root, name)
        for finding in _findings(context, path, name):
            problems += finding.severity == "problem"
            warnings += finding.severity == "warning"
            _tell(context, name, path.relative_to(context.root), finding)
    context.emit("check", modules=modules, problems=problems, warnings=warnings)
    if not context.json:
        also = f", {_counted(warnings, 'warning')}" if warnings else ""
        context.say(f"{', '.join(modules) or 'no module'}: {_counted(problems, 'problem')}{also}")
    return ExitCode.FAILED if problems else ExitCode.OK


def _counted(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _modules(root: Path, module: str | None, strays: Sequence[Problem]) -> list[str]:
    from lopen.documents.spec import find_modules

    known = find_modules(root)
    if module is None and (known or strays):
        return known
    if module is None:
        raise LopenError(f"no specification in {root / 'specs'}", hint="to write one: lopen init MODULE")
    require_known(module, known)
    return [module]


def require_known(module: str, known: Sequence[str]) -> None:
    """Raise `LopenError` for a module without a specification; suggest a similar name."""
    from lopen.documents.spec import module_name

    if module_name(module) not in known:
        near = get_close_matches(module, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"to create it: lopen init {module}"
        raise LopenError(f"no module named {module}", hint=hint)


def _findings(context: CommandContext, path: Path, module: str) -> Iterator[SpecProblem]:
    from lopen.documents.source import UnreadableSource
    from lopen.documents.spec import load_specification

    try:
        specification = load_specification(path, module=module)
    except UnreadableSource as error:  # an unreadable file must not hide the problems of others
        yield SpecProblem("problem", error.line or 1, f"{error.problem}; {error.hint}")
        return
    found = [
        *(SpecProblem("problem", p.line, p.message) for p in specification.problems),
        *(SpecProblem("warning", w.line, w.message) for w in specification.warnings),
    ]
    yield from sorted(found, key=lambda f: f.line)


def _tell(context: CommandContext, module: str, path: Path, finding: SpecProblem) -> None:
    context.emit(finding.severity, module=module, path=str(path), line=finding.line, message=finding.message)
    if not context.json:
        kind = "" if finding.severity == "problem" else "warning: "
        context.say(f"{path}:{finding.line}: {kind}{finding.message}")
