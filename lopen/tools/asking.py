"""Tools that touch people and papers: a question, a specification, research."""

from __future__ import annotations

from lopen.documents.research import render, slug
from lopen.documents.spec import parse
from lopen.events import Notice, QuestionAsked
from lopen.tools import inputs
from lopen.tools.results import Result, done
from lopen.tools.workbench import Workbench
from lopen.workflow.session import Pause, Question
from lopen.workflow.steps import Step


def ask_user(bench: Workbench, wanted: inputs.AskUser) -> Result:
    """A person's answer; or the question's own default, kept as an assumption."""
    session = bench.session
    options = tuple(wanted.options or ())
    capped = session.step is not Step.DRAFT_SPECIFICATION
    spent = capped and session.clarifications >= bench.settings.workflow.max_clarifications
    if bench.settings.workflow.unattended or spent:
        return _assume(bench, wanted, options)
    asked = session.clarifications + (1 if capped else 0)
    answer = bench.person.ask(wanted.question, options, wanted.default)
    if answer is not None:
        told = QuestionAsked(wanted.question, options, wanted.default, answer)
        bench.journal.change(told, clarifications=asked)
        return done(answer=answer, assumed=False)
    question = Question(wanted.question, options, wanted.default)
    bench.journal.change(
        QuestionAsked(wanted.question, options, wanted.default), question=question, clarifications=asked
    )
    bench.pause = Pause(
        "question",
        f"the model asks: {wanted.question} (default: {wanted.default})",
        f"lopen answer {session.id} TEXT",
    )
    return done(answer=None, assumed=False, waiting=True)


def _assume(bench: Workbench, wanted: inputs.AskUser, options: tuple[str, ...]) -> Result:
    told = QuestionAsked(wanted.question, options, wanted.default, wanted.default, assumed=True)
    line = f"{' '.join(wanted.question.split())} Assumed: {' '.join(wanted.default.split())}"
    bench.journal.change(told, assumptions=(*bench.session.assumptions, line))
    return done(answer=wanted.default, assumed=True)


def write_spec(bench: Workbench, wanted: inputs.WriteSpec) -> Result:
    """Writes the specification and answers with what `lopen check` would say of it."""
    module = bench.session.module
    name = f"specs/{module}/SPECIFICATION.md"
    content = wanted.content if wanted.content.endswith("\n") else wanted.content + "\n"
    spec = parse(content, module=module, path=bench.root / name)
    bench.write_paper(name, content)
    problems = [str(p) for p in spec.problems]
    bench.recorded = not problems
    return done(problems=problems)


def log_research(bench: Workbench, wanted: inputs.LogResearch) -> Result:
    """Keeps a note beside the specification."""
    text = render(wanted.topic, wanted.summary, wanted.findings, wanted.sources or (), wanted.relevance or "")
    name = f"specs/{bench.session.module}/RESEARCH-{slug(wanted.topic)}.md"
    bench.write_paper(name, text)
    bench.verifier.own_paper(name)
    bench.journal.tell(Notice("info", f"research logged: {name}"))
    return done(path=name)


def research(bench: Workbench, wanted: inputs.Research) -> Result:
    """One sub-agent with the read-only tools; its findings are logged."""
    return bench.research(bench, wanted.topic, wanted.question)
