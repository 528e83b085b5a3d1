"""Tools for the plan, the context, the specification, research, progress and questions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lopen.core.errors import LopenError
from lopen.core.events import Notice, QuestionAsked
from lopen.core.hashing import content_hash
from lopen.files.text_files import READ_CHARACTERS
from lopen.specification.drift import spec_hash
from lopen.specification.modules import read_topic, render_note, slug, topics
from lopen.specification.sections import AmbiguousSection, NoSuchSection
from lopen.specification.spec import parse_specification
from lopen.tools import calls
from lopen.tools.calls import ToolResult, done, failed
from lopen.tools.questions import answered
from lopen.tools.workbench import Workbench
from lopen.workflow import changes
from lopen.workflow.pauses import Question
from lopen.workflow.session import MAX_CLARIFICATIONS, Session
from lopen.workflow.steps import Step

MOST_QUESTIONS = 3  # of a session; the answers from this one on say so
PLAN_IT = (
    "record its plan, beginning with record_dependencies; without a plan, end your turn without a tool call"
)
STOP_ASKING = "stop asking: decide by the specification, and record the step's result"


def read_spec(bench: Workbench, wanted: calls.ReadSpec) -> ToolResult:
    """Read a section of a specification by heading or heading path (`Behaviour > Rounding`); without
    `section`, its outline.
    """
    try:
        spec = bench.project.load_spec(wanted.module or bench.session.module)
        if wanted.section is None:
            lines = [f"{'#' * s.level} {s.title}" for s in spec.outline.sections]
            return _readable("\n".join(lines), paper(spec.module), 1, section=None)
        section = spec.outline.find(wanted.section)
    except (AmbiguousSection, NoSuchSection) as error:
        return failed(error.message, error.hint or "read_spec without a section gives the outline")
    except LopenError as error:
        drafting = bench.session.step is Step.DRAFT_SPECIFICATION and wanted.module in (
            None,
            bench.session.module,
        )
        return failed(
            error.message, "write_spec records it" if drafting else "list_files shows what lies in specs/"
        )
    text = spec.outline.full_text(section)
    return _readable(text, paper(spec.module), section.line, section=" > ".join(section.path))


def paper(module: str) -> str:
    """Return the path of a module's specification for `read_file`."""
    return f"specs/{module}/SPECIFICATION.md"


def read_research(bench: Workbench, wanted: calls.ReadResearch) -> ToolResult:
    """Read a research note by topic; without `topic`, the list of topics."""
    folder = bench.project.root / "specs" / bench.session.module
    if wanted.topic is None:
        return done(topics=[t.name for t in topics(folder)])
    text = read_topic(folder, wanted.topic)
    if text is None:
        return failed(f"there is no research on {wanted.topic!r}", "read_research without a topic lists them")
    name = f"specs/{bench.session.module}/RESEARCH-{slug(wanted.topic)}.md"
    return _readable(text, name, 1, topic=wanted.topic)


def _readable(text: str, path: str, line: int, **fields: Any) -> ToolResult:
    """Return text that starts at `line` of the file `path`, truncated if it is too long for one result."""
    seen = content_hash(text)
    if len(text) <= READ_CHARACTERS:
        return done(raw=text, content_hash=seen, **fields)
    head = text[:READ_CHARACTERS]
    head = head[: head.rfind("\n") + 1] or head
    note = f"Cut at {len(head)} of {len(text)} characters; read_file {path} offset={line + head.count(chr(10))} gives the rest."
    return done(raw=head, content_hash=seen, truncated=True, note=note, **fields)


def read_plan(bench: Workbench, _: calls.NoInput) -> ToolResult:
    """Read the plan: components, tasks, subtasks and their states."""
    components = [
        {
            "id": c.id,
            "name": c.name,
            "state": c.state.value,
            "tasks": [
                {
                    "id": t.id,
                    "name": t.name,
                    "state": t.state.value,
                    "subtasks": [{"name": s.name, "done": s.done} for s in t.subtasks],
                }
                for t in c.tasks
            ],
        }
        for c in bench.session.tree.components
    ]
    return done(plan={"components": components})


def ask_user(bench: Workbench, wanted: calls.AskUser) -> ToolResult:
    """Ask the person one question; `default` is the answer where nobody answers. Calls behind it in the turn are not run.

    A question that the person has answered gets their answer again.
    """
    session = bench.session
    if (known := session.dialogue.answer_to(wanted.question)) is not None:
        return done(answer=known, assumed=False, hint="the person answered this already")
    options = tuple(wanted.options or ())
    capped = session.step is not Step.DRAFT_SPECIFICATION
    spent = capped and session.dialogue.clarifications >= MAX_CLARIFICATIONS
    session = changes.count_question(session) if capped else session
    if bench.settings.workflow.unattended or spent:
        return _assume(bench, session, wanted, options)
    question = Question(session.id, wanted.question, options, wanted.default)
    told = QuestionAsked(wanted.question, options, wanted.default)
    bench.journal.save(changes.ask_person(session, question), told)  # first: any shell shows and answers it
    answer = answered(bench.journal, bench.person, question)
    if answer is not None:
        return done(answer=answer, assumed=False)
    return replace(done(answer=None, assumed=False, waiting=True), pause=question)


def _assume(
    bench: Workbench, session: Session, wanted: calls.AskUser, options: tuple[str, ...]
) -> ToolResult:
    asked, known = session.dialogue.clarifications, session.dialogue.assumptions
    begin = f"{' '.join(wanted.question.split())} Assumed: "
    answer = next((line.removeprefix(begin) for line in known if line.startswith(begin)), None)
    if answer is None:
        answer = wanted.default
        told = QuestionAsked(wanted.question, options, wanted.default, answer, assumed=True)
        bench.journal.save(changes.assume(session, begin + " ".join(answer.split())), told)
    else:
        bench.journal.save(session)
    enough = {"hint": f"{asked} questions were asked; {STOP_ASKING}"} if asked >= MOST_QUESTIONS else {}
    return done(answer=answer, assumed=True, **enough)


def write_spec(bench: Workbench, wanted: calls.WriteSpec) -> ToolResult:
    """Write the module's specification; answers with the problems it has."""
    module = bench.session.module
    name = f"specs/{module}/SPECIFICATION.md"
    content = wanted.content if wanted.content.endswith("\n") else wanted.content + "\n"
    spec = parse_specification(content, module=module, path=bench.project.root / name)
    bench.project.place.write_document(name, content)
    problems = [str(p) for p in spec.problems]
    written = "" if problems else spec_hash(spec.outline)
    bench.journal.save(changes.write_specification(bench.session, written))
    return done(problems=problems, **({} if problems else {"next": PLAN_IT}))


def log_research(bench: Workbench, wanted: calls.LogResearch) -> ToolResult:
    """Keep a research note beside the specification."""
    text = render_note(
        wanted.topic, wanted.summary, wanted.findings, wanted.sources or (), wanted.relevance or ""
    )
    name = f"specs/{bench.session.module}/RESEARCH-{slug(wanted.topic)}.md"
    bench.project.place.write_document(name, text)
    bench.project.verifier.mark_own_file(name)
    bench.journal.tell(Notice("detail", f"research logged: {name}"))
    return done(path=name)


def research(bench: Workbench, wanted: calls.Research) -> ToolResult:
    """Have a sub-agent with read-only tools answer one question about the project; its findings are logged.
    It costs money: use it for questions that need much reading.
    """
    return bench.steps.research(bench, wanted.topic, wanted.question)
