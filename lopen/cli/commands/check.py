"""`lopen check`: report the problems of specifications as `path:line: message`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from lopen.application.command_context import CommandContext
from lopen.cli.command import command
from lopen.cli.parameters import OptionalModule
from lopen.core.errors import ExitCode, LopenError

After = Mapping[str, Sequence[str]]
Finding = tuple[str, int, str]
"""`problem` or `warning`, the line, and the message."""


@command
def check(context: CommandContext, module: OptionalModule = None) -> ExitCode:
    """Validate specifications. Exit code 1: one has a problem, or is not finished (warnings do not count)."""
    problems, warnings = Counter[str](), Counter[str]()
    chosen, misnamed = _chosen(context.root, module)
    after = _after(context.root, chosen)
    for path, message in misnamed:
        problems[path.parent.name] += 1
        _tell(context, "", path, ("problem", 1, message))
    for name, path in chosen.items():
        for finding in _findings(path, name, after):
            (problems if finding[0] == "problem" else warnings)[name] += 1
            _tell(context, name, path, finding)
    context.emit("check", modules=list(chosen), problems=problems.total(), warnings=warnings.total())
    for name in dict.fromkeys((*chosen, *problems)):
        also = f", {_counted(warnings[name], 'warning')}" if warnings[name] else ""
        context.say(f"{name}: {_counted(problems[name], 'problem')}{also}")
    return ExitCode.FAILED if problems else ExitCode.OK


def _counted(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _chosen(root: Path, given: str | None) -> tuple[dict[str, Path], list[tuple[Path, str]]]:
    """Return module → specification for a module, a path, or the whole project; and its misnamed specifications."""
    from lopen.specification.modules import (
        FILE_NAME,
        find_modules,
        misnamed_specifications,
        module_name,
        require_known,
        spec_path,
    )

    path = Path(given) if given and ("/" in given or given.endswith(".md")) else None
    if path is not None:
        stray = path.suffix == ".md" and path.name != FILE_NAME
        if not path.exists() and (stray or not path.parent.exists()):
            raise LopenError(
                f"{given} does not exist",
                hint="name a module, its folder or its file; lopen status lists them",
            )
        if path.is_file() and path.suffix != ".md":
            raise LopenError(
                f"{given} is a file, and no specification: that is named {FILE_NAME}",
                hint="name a module, its folder or its file; lopen status lists them",
            )
        path = (path if path.suffix == ".md" else path / FILE_NAME).absolute()
        return {path.parent.name: path}, []
    known, misnamed = find_modules(root), list(misnamed_specifications(root))
    if given is not None:
        misnamed = [(path, message) for path, message in misnamed if path.parent.name == module_name(given)]
        if not misnamed:
            require_known(given, known)
        known = [given] if given in known else []
    elif not known and not misnamed:
        raise LopenError(f"no specification in {root / 'specs'}", hint="to write one: lopen init MODULE")
    return {name: spec_path(root, name) for name in known}, misnamed


def _after(root: Path, chosen: dict[str, Path]) -> After:
    """Return module → the modules before it, of the whole project where a chosen module names any."""
    from lopen.specification.modules import find_modules, spec_path
    from lopen.specification.spec import load_specification

    after: dict[str, tuple[str, ...]] = {}
    for name in {*chosen, *find_modules(root)}:
        with suppress(LopenError):  # it is reported where it is checked itself
            after[name] = load_specification(chosen.get(name) or spec_path(root, name), module=name).after
    return after


def _findings(path: Path, module: str, after: After) -> Iterator[Finding]:
    from lopen.specification.modules import UnreadableSource
    from lopen.specification.order import order_problems
    from lopen.specification.spec import line_of_after, load_specification

    try:
        specification = load_specification(path, module=module)
    except UnreadableSource as error:  # an unreadable file must not hide the problems of others
        yield "problem", error.line or 1, f"{error.problem}; {error.hint}"
        return
    found = [
        *(("problem", p.line, p.message) for p in (*specification.problems, *specification.unwritten)),
        *(
            ("problem", line_of_after(specification.outline), message)
            for message in order_problems(module, after)
        ),
        *(("warning", w.line, w.message) for w in specification.warnings),
    ]
    yield from sorted(found, key=lambda finding: finding[1])


def _tell(context: CommandContext, module: str, path: Path, finding: Finding) -> None:
    severity, line, message = finding
    path = path.relative_to(context.root) if path.is_relative_to(context.root) else path
    context.emit(severity, module=module, path=str(path), line=line, message=message)
    if not context.json:
        kind = "" if severity == "problem" else "warning: "
        context.say(f"{path}:{line}: {kind}{message}")
