"""`lopen pr`: open a pull request for a module, with lopen's report as its text."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from lopen.application.command_context import CommandContext
from lopen.cli.command import command
from lopen.cli.parameters import LatestModule
from lopen.core.errors import ExitCode, LopenError
from lopen.core.escape import inert
from lopen.core.money import cost_text
from lopen.core.trusted_programs import find_on_path
from lopen.limits.budget import BudgetState
from lopen.store.audit import verifications
from lopen.store.sessions import SessionStore
from lopen.workflow.next_step import standing_work
from lopen.workflow.session import Session

_MARKUP = re.compile(r"([\\`*\[\]<>&~|!]|(?<!\w)_|_(?!\w))")
_CODE = re.compile(r"((?<!`)`[^`]+`(?!`))")
_REFERENCES = re.compile(r"([@#]|://|\bGH-)")
TIMEOUT_S = 300.0  # pushing may take a while
PrintOption = Annotated[bool, typer.Option("--print", help="Only print the title and the text.")]
DraftOption = Annotated[bool, typer.Option("--draft", help="Open it as a draft.")]


@command
def pr(
    context: CommandContext,
    module: LatestModule = None,
    print_: PrintOption = False,
    draft: DraftOption = False,
) -> ExitCode:
    """Push a module's branch and open a pull request with gh or glab; without either, print its text.

    Only a person may run this command.
    """
    from lopen.application.open_store import looked_up, shown_session
    from lopen.application.reports import gone_branch, specification_of

    store, session = shown_session(context, module)
    if session.branch is None:
        raise LopenError(f"{session.module} has no branch yet", hint=f"lopen run {session.module}")
    if gone := gone_branch(context, session):
        raise LopenError(gone[0], hint=f"to make it again: {gone[1]}")
    budget = looked_up(context, store.database).of(f"session:{session.id}")
    title = title_of(session)
    spec = specification_of(context.root, session.module)
    described = spec.description if spec else ""
    body = "\n".join(report(store, session, budget, described))
    found = () if print_ else (find_on_path(name, context.root) for name in ("gh", "glab"))
    program = next((path for path in found if path), None)
    remote = _git(context, "remote").splitlines()
    context.emit(
        "pull_request", session=session.id, branch=session.branch, title=title, body=body, program=program
    )
    if program is None or not remote:
        context.say(f"{title}\n\n{body}")
        if not print_:
            missing = "this repository has no remote" if program else "neither gh nor glab is installed"
            context.warn(
                f"{missing}, so nothing was pushed: push {session.branch}, then open its pull request with the text above"
            )
        return ExitCode.OK
    _git(context, "push", "--set-upstream", "origin" if "origin" in remote else remote[0], session.branch)
    context.say(_run(context, [program, *_arguments(program, session, title, body, draft=draft)]))
    return ExitCode.OK


def _arguments(program: str, session: Session, title: str, body: str, *, draft: bool) -> list[str]:
    """Return the arguments that create the pull request (GitHub) or merge request (GitLab)."""
    gh = Path(program).name == "gh"
    kind, source, text, base = (
        ("pr", "head", "body", "base") if gh else ("mr", "source-branch", "description", "target-branch")
    )
    given = {source: session.branch, "title": title, text: body, base: session.start_branch}
    options = [part for name, value in given.items() if value for part in (f"--{name}", value)]
    return [kind, "create", *options, *([] if gh else ["--yes"]), *(["--draft"] if draft else [])]


def title_of(session: Session) -> str:
    """Return the title: the built work, and whether it is complete."""
    return f"feat({session.module}): build {session.module}" + ("" if session.finished else " (not complete)")


def report(
    store: SessionStore, session: Session, budget: BudgetState | None, description: str = ""
) -> Iterator[str]:
    """Yield the text in Markdown: what it is, what to look at first, criteria with evidence, tasks, and cost."""
    from lopen.application.reports import criterion_states, present_verdicts
    from lopen.judge.judging import open_remarks

    verdicts = present_verdicts(store, session)
    tasks = list(session.tree.tasks)
    names = {task.id: task.name for task in tasks} | {c.id: c.name for c in session.tree.components}
    if description:
        yield plain(description)
    yield from _listed(
        "Look at first",
        [
            *(f"{t.name} was skipped: {t.given_up}" for t in tasks if t.given_up),
            *(f"accepted by a person where the judge was not sure: {x}" for x in session.dialogue.accepted),
            *(f"assumed, since nobody answered: {x}" for x in session.dialogue.assumptions),
            *(f"decided by a person: {asked} {answer}" for asked, answer in session.dialogue.answers),
            *(f"remark of {remark.shown}" for remark in open_remarks(store, session)),
            *_rejections(verdicts, names),
        ],
    )
    passed = [
        v for v in reversed(verdicts) if v["passed"]
    ]  # the first one that held it comes last, and stays
    proved = {c["id"]: v["subject"] for v in passed for c in v.get("criteria", ()) if c["holds"] == "yes"}
    commits = {task.id: f" {task.commit[:12]}" for task in tasks if task.commit}
    if session.plan.criteria:
        yield "\n## Acceptance criteria\n"
    for criterion in criterion_states(session, verdicts, session.plan.criteria):
        subject = proved.get(criterion.id, "")
        shown = (
            criterion.named,
            subject and f"judged with {names.get(subject, subject)}{commits.get(subject, '')}",
        )
        evidence = plain("; ".join(filter(None, shown)))
        yield f"- [{'x' if criterion.holds == 'yes' else ' '}] **{criterion.id}** {criterion.text}{evidence and f' ({evidence})'}"
    if tasks:
        yield "\n## Tasks\n"
    for task in tasks:
        given_up = f", skipped: {plain(task.given_up)}" if task.given_up else ""
        yield f"- {plain(task.name)}: {task.state.value.replace('_', ' ')}{given_up} {(task.commit or '')[:12]}".rstrip()
    yield from _questions(verdicts)
    standing = standing_work(session)
    kept = [v for v in verifications(store, session.id) if (v.task or session.module) in standing]
    yield from _check(
        "Do the tests notice faults?",
        "lopen put small faults (mutants) into the new code, one at a time, and ran the tests on each.",
        {names.get(v.task or "", session.module): v.output for v in kept if v.tool == "mutation_check"},
    )
    yield from _check(
        "Do changed tests still tell the old code from the new?",
        "lopen ran the earlier versions of changed tests on the new code, and the new versions on the old code.",
        {names.get(v.task or "", session.module): v.output for v in kept if v.tool == "earlier_tests"},
    )
    if budget is not None:
        yield f"\nTokens: {budget.tokens_used:,}. Cost: {cost_text(budget.cost_usd, budget.unpriced_tokens)}."
    yield f"\nBuilt with lopen, session {session.id}."


def _rejections(verdicts: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> Iterator[str]:
    """Yield each reason for which work did not pass, once, with the number of its verdicts."""
    passed = {v["subject"] for v in verdicts if v["passed"]}
    for (subject, summary), count in Counter(
        (v["subject"], v["summary"]) for v in verdicts if not v["passed"]
    ).items():
        times = f" {count} times" if count > 1 else ""
        end = "before it passed" if subject in passed else "and has not passed"
        yield f"{names.get(subject, subject)} was rejected{times} {end}: {summary}"


def _questions(verdicts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield lopen's questions about the changes with the judge's latest answers."""
    asked = {(q["text"], q["path"]): q for verdict in verdicts for q in verdict.get("questions", ())}
    if asked:
        yield "\n## What lopen asked the judge about the changes\n"
    for question in asked.values():
        place = f"{plain(question['path'])}: " if question["path"] else ""
        answer = f"{question['answer'].replace('_', ' ')}: {question['because']}".rstrip(": ")
        yield f"- {place}{plain(question['text'])}"
        yield f"  - {plain(answer)}"


def _check(title: str, what: str, outputs: Mapping[str, str]) -> Iterator[str]:
    """Yield the latest result of a check for each task, and for the module."""
    if outputs:
        yield f"\n## {title}\n"
        yield f"{what}\n"
    for where, output in outputs.items():
        first, *more = output.splitlines()
        yield f"- {plain(where)}: {plain(first)}"
        yield from (f"  - {plain(entry)}" for entry in more)


def _listed(title: str, entries: tuple[str, ...] | list[str]) -> Iterator[str]:
    if entries:
        yield f"\n## {title}\n"
        yield from (f"- {plain(entry)}" for entry in entries)


def plain(text: str) -> str:
    """Return text as one line of Markdown that shows it as it is: no markup but code between backticks, no mention of
    a user, no reference to an issue.

    A space of no width takes the meaning from `@`, `#` and addresses, which have none in code.
    """
    parts = _CODE.split(" ".join(inert(text).split()))
    parts[::2] = (_REFERENCES.sub(r"\1&#8203;", _MARKUP.sub(r"\\\1", part)) for part in parts[::2])
    return "".join(parts)


def _git(context: CommandContext, *arguments: str) -> str:
    from lopen.git.command import find_git

    return _run(context, [find_git(context.root), *arguments])


def _run(context: CommandContext, argv: list[str]) -> str:
    """Run a program with the person's environment; return its output."""
    try:
        done = subprocess.run(
            argv, cwd=context.root, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LopenError(f"cannot run {argv[0]}: {error}", hint="lopen pr --print shows the text") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise LopenError(f"{' '.join(argv[:3])} failed: {said}", hint="lopen pr --print shows the text")
    return done.stdout.strip()
