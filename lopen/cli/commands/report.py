"""`lopen report`: a module's dossier, for a reviewer: what was built, and what proves each criterion."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.application.event_lines import counted
from lopen.cli.command import command
from lopen.cli.parameters import LatestModule
from lopen.core.errors import ExitCode, LopenError
from lopen.core.money import dollars

if TYPE_CHECKING:
    from lopen.application.dossier import Proof
    from lopen.application.overview import Dossier

HtmlOption = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write it as one file that a browser shows without lopen."),
]


@command
def report(context: CommandContext, module: LatestModule = None, html: HtmlOption = None) -> ExitCode:
    """Show what proves each criterion of a module: tasks, commits, tests and verdict; with --html also every change."""
    from lopen.application.open_store import shown_session
    from lopen.application.overview import Reading, read_dossier
    from lopen.application.reports import task_changes
    from lopen.judge.judging import open_remarks

    store, session = shown_session(context, module)
    found = read_dossier(Reading(context, store, context.load().settings), session.module, session.id)
    if html is not None:
        from lopen.server.dashboard.markup import Place
        from lopen.server.dashboard.module import ModuleView, report_page

        shown = ModuleView(Place(context.root.name), found)
        try:
            html.write_text(report_page(shown, task_changes(context, session)), "utf-8")
        except OSError as error:
            raise LopenError(
                f"cannot write {html}: {error.strerror}", hint="name another file with --html"
            ) from error
    remarks = [remark.shown for remark in open_remarks(store, session)]
    context.emit("report", file=None if html is None else str(html), remarks=remarks, **found.to_json())
    told = [*_lines(found), *(f"remark of {remark}" for remark in remarks)]
    context.say(f"wrote {html}" if html is not None else "\n".join(told))
    return ExitCode.OK


def _lines(found: Dossier) -> Iterator[str]:
    module = found.module
    met, count = module.criteria
    tests = "" if module.tests is None else f", {module.tests} tests pass"
    noticed, ran = module.mutants
    mutants = f", tests noticed {noticed} of {ran} mutants" if ran else ""
    yield f"{module.module}: {module.state}, {met} of {count} criteria met{tests}{mutants}, {dollars(module.pace.spent_usd)} spent"
    for proof in found.proofs:
        yield from proof_lines(proof)


def proof_lines(proof: Proof) -> Iterator[str]:
    """Yield what proves a criterion, in lines for a person."""
    criterion = proof.criterion
    again = f", after {counted(proof.rejections, 'rejection')}" if proof.rejections else ""
    yield f"{proof.number}. {criterion.id} {criterion.state}{again}: {criterion.text}"
    for task in proof.tasks:
        yield f"     built by {task.name} ({task.id}): {task.commit[:12] if task.commit else 'skipped' if task.given_up else task.state.value.replace('_', ' ')}"
    if proof.tests:
        yield f"     tests: {', '.join(proof.tests)}"
    for file, count in proof.test_files.items():
        yield f"     tests in {file}: {count}"
    if proof.missing_tests:
        yield f"     the judge names tests that no test run has: {', '.join(proof.missing_tests)}"
    if proof.verdict:
        by = ", which a person accepted" if proof.by_person else ""
        yield f"     {criterion.named} ({proof.verdict}{by})"
    if proof.seen:
        yield f"     lopen saw: {proof.seen}"
