"""The prompt of one iteration, as a value: the stable part first, byte for byte the same between turns and tasks.

The first two system blocks, the constant text of a phase and the common text of a component's tasks, have a cache mark.
The third is the text of this iteration. The other two of the four marks are the conversation's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lopen.models.messages import SystemBlock
from lopen.models.prompts.parts import (
    CHARS_PER_TOKEN,
    DECIDED,
    Part,
    bullet,
    decision_lines,
    fit,
    joined,
    plan_lines,
    state_lines,
    task_lines,
)
from lopen.models.prompts.templates import template
from lopen.specification.sections import Section, normalise_name
from lopen.specification.spec import (
    ACCEPTANCE_CRITERIA,
    DEPENDENCIES,
    OVERVIEW,
    SKILLS_AND_HOOKS,
    Specification,
)
from lopen.workflow.session import Session
from lopen.workflow.steps import PLANNING_STEPS, Step, number
from lopen.workflow.task_tree import Component, Task

CONTEXT_TOKENS = 60_000  # the largest prompt that a conversation starts with
PLANNING_CHARS = 24_000  # a specification up to this size is given whole in planning
SECTION_CHARS = 40_000  # of sections a prompt carries at most this much; `read_spec` gives the rest


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """The parts of a prompt that show files, and the paths of the files that are shown whole."""

    parts: tuple[Part, ...] = ()
    whole: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The project's part of the prompt, gathered by the loop.

    `languages`: name, version and tools found here. `conventions`: (path, text) of AGENTS.md or CLAUDE.md.
    `research`: (topic, excerpt). `work_in_progress`: the uncommitted diff after an interruption, else "".
    `limits`: budgets and circuits now; `bounds`: the limits that shape the work, the same in all of a session.
    `verifications`: the tools that the task in progress needs, in the order to call them.
    `warnings`: the last accepted verdict's. `task_files`: the files that the task builds on; in step 1 those that the
    request names, in steps 2 to 5 outlines of those that the specification names. `established`: the criteria that verdicts found to hold. In step 1 `told`
    is (title, text) of the README's beginning and of a run of the present tests; in steps 1 to 5 `questions` says who
    answers `ask_user`.
    """

    languages: Sequence[str]
    commands: Sequence[tuple[str, str | None]]
    sandbox: str
    conventions: Sequence[tuple[str, str]]
    files: str
    research: Sequence[tuple[str, str]]
    work_in_progress: str
    limits: str
    bounds: Sequence[str] = ()
    told: Sequence[tuple[str, str]] = ()
    questions: str = ""
    established: frozenset[str] = frozenset()
    verifications: Sequence[str] = ()
    warnings: Sequence[str] = ()
    task_files: TaskFiles = TaskFiles()


@dataclass(frozen=True, slots=True)
class Prompt:
    """The system blocks and the opening message of a conversation."""

    system: tuple[SystemBlock, ...]
    opening: str


def build(
    session: Session,
    spec: Specification | None,
    around: Surroundings,
    *,
    context_tokens: int = CONTEXT_TOKENS,
    templates: str = "",
    request: str = "",
) -> Prompt:
    """The prompt for the session's step. `request` is the person's own words (`--prompt`)."""
    shared = _shared(session, spec)
    own = _own(session, spec, around, request)
    # Only the endpoint knows the limit: each level halves the text that would be sent.
    whole = min(context_tokens * CHARS_PER_TOKEN, sum(len(p.text) for p in (*shared, *own)))
    fitted = fit([*shared, *own], whole // 2**session.limits.context_level)
    return Prompt(
        (
            SystemBlock(_stable(session.step, around, templates), cached=True),
            *([SystemBlock(text, cached=True)] if (text := joined(fitted[: len(shared)])) else []),
            SystemBlock(joined(fitted[len(shared) :])),
        ),
        _opening(session),
    )


def instructions(step: Step) -> tuple[str, ...]:
    """The names of the templates with the step's instructions: step 1 records the plan too."""
    if step in PLANNING_STEPS:
        return ("planning",)
    if step is Step.DRAFT_SPECIFICATION:
        return ("draft_specification", "planning")
    return ("iterate_through_tasks",)


def _stable(step: Step, around: Surroundings, templates: str) -> str:
    commands = "\n".join(f"- {name}: {command}" for name, command in around.commands if command)
    parts = [
        Part("Verify commands of the approved specification", commands),
        Part("What commands may do", around.sandbox),
        Part("Limits that shape the work", "\n".join(map(bullet, around.bounds))),
        *(
            Part(f"Conventions of this repository ({path})", text, data=True)
            for path, text in around.conventions
        ),
    ]
    names = ("role", "constraints", "history", *instructions(step))
    texts = [template(name, templates) for name in names]
    return "\n\n".join([*texts, joined(parts)]).rstrip() + "\n"


def _shared(session: Session, spec: Specification | None) -> list[Part]:
    decided = Part(DECIDED, decision_lines(session))
    if spec is None:
        return [decided]
    if session.step is Step.DRAFT_SPECIFICATION:
        return [
            decided,
            Part("The specification as it is now", spec.text, 2, data=True, rest="read_spec gives sections"),
        ]
    component = _component(session)
    if session.step is Step.ITERATE_THROUGH_TASKS and component is not None:
        return [decided, _outline(spec), *_component_parts(spec, component)]
    return [decided, *_planning_parts(spec)]


def _component(session: Session) -> Component | None:
    return session.tree.component(session.plan.selected) if session.plan.selected else None


def _outline(spec: Specification) -> Part:
    titles = "\n".join(f"{'  ' * (s.level - 1)}- {s.title}" for s in spec.outline.sections)
    return Part("Outline of the specification", titles, 5, data=True, rest="read_spec without a section")


def _component_parts(spec: Specification, component: Component) -> list[Part]:
    """Return the common parts of the component's tasks: criteria and sections only if they are the same for all."""
    parts = [
        Part("Component", f"{component.name} ({component.id})\n{component.description}", 1, data=True),
        *fit(section_parts(spec, named(spec, (OVERVIEW,))), SECTION_CHARS),  # criteria lean on it
    ]
    if _share_criteria(component):
        parts += _criteria("component", spec, component.criteria)
    if _share_sections(component):
        parts += _sections(spec, component, component.tasks[0] if component.tasks else None)
    return parts


def _share_criteria(component: Component) -> bool:
    """Every task is to meet all criteria of the component."""
    return all(component.criteria_of(task) == component.criteria for task in component.tasks)


def _share_sections(component: Component) -> bool:
    """Every task rests on the same sections."""
    return len({frozenset(t.spec_sections or component.spec_sections) for t in component.tasks}) <= 1


def _sections(spec: Specification, component: Component, task: Task | None) -> list[Part]:
    """Return the sections that the task names, else its component's; all tasks are shown the Overview."""
    names = (task and task.spec_sections) or component.spec_sections
    overview = named(spec, (OVERVIEW,))
    chosen = [section for section in named(spec, names) if section not in overview]
    return list(fit(section_parts(spec, chosen), SECTION_CHARS))


def _criteria(whose: str, spec: Specification, ids: Sequence[str]) -> list[Part]:
    """The criteria of those ids in full, and the others by id alone."""
    shown = "\n".join(f"- {c.id}: {c.text}" for c in spec.criteria if c.id in ids)
    others = ", ".join(c.id for c in spec.criteria if c.id not in ids)
    return [
        Part(f"Acceptance criteria of this {whose}", shown, data=True),
        Part("Acceptance criteria of other work (read_spec shows them)", others),
    ]


def _planning_parts(spec: Specification) -> list[Part]:
    """Return the criteria and the specification: all of it, or of a long one its outline and what planning always needs."""
    criteria = Part(
        "Acceptance criteria", "\n".join(f"- {c.id}: {c.text}" for c in spec.criteria), 0, data=True
    )
    said_elsewhere = {normalise_name(ACCEPTANCE_CRITERIA), normalise_name(SKILLS_AND_HOOKS)}
    chapters = [
        s for s in spec.outline.sections if s.level == 2 and normalise_name(s.title) not in said_elsewhere
    ]
    parts = section_parts(spec, chapters)
    if sum(len(p.text) for p in parts) <= PLANNING_CHARS:
        return [criteria, *parts]
    always = {normalise_name(OVERVIEW), normalise_name(DEPENDENCIES)}
    first = section_parts(spec, [s for s in chapters if normalise_name(s.title) in always])
    more = Part("More sections", "The other sections are long: `read_spec` gives each of them.")
    return [_outline(spec), criteria, *fit(first, SECTION_CHARS), more]


def named(spec: Specification, names: Sequence[str]) -> list[Section]:
    """The sections of those names, each once; a name that is not there is left out."""
    return list(dict.fromkeys(s for name in names if (s := spec.outline.get(name)) is not None))


def outermost(spec: Specification, sections: Sequence[Section]) -> list[Section]:
    """The sections that lie in none of the others; the criteria, which are shown apart, are not among them."""
    inside = {below for s in sections for below in spec.outline.descendants(s)}
    inside |= {
        s for s in sections if s.level == 2 and normalise_name(s.title) == normalise_name(ACCEPTANCE_CRITERIA)
    }
    return [s for s in sections if s not in inside]


def section_parts(spec: Specification, sections: Sequence[Section]) -> list[Part]:
    """The sections with their subsections, as data, each once."""
    parts = []
    for section in outermost(spec, sections):
        text = spec.outline.full_text(section).strip("\r\n")
        rest = f"read_spec section={section.address!r}"
        parts.append(Part(f"Specification: {section.address}", text, 3, data=True, rest=rest))
    return parts


def _own(session: Session, spec: Specification | None, around: Surroundings, request: str) -> list[Part]:
    corrections = "\n".join(map(bullet, session.dialogue.corrections))
    notes = "\n".join(map(bullet, session.dialogue.notes))
    research = "\n".join(f"- {topic}: {excerpt}" for topic, excerpt in around.research)
    return [
        Part("Workflow state", state_lines(session, around.established)),
        *_task_parts(session, spec, around),
        _refused(session),
        Part("What the person asks for", request, data=True),
        Part("Told by lopen", notes),
        Part("Corrections", corrections),
        Part(
            "Remarks of the judge on the work before (mend them with this task)",
            "\n".join(map(bullet, around.warnings)),
            3,
            data=True,
        ),
        Part("Plan", plan_lines(session), 4, rest="read_plan gives all of it"),
        Part("Files that are not shown whole", around.files, 6, data=True, rest="list_files gives more"),
        *(Part(title, text, 5, data=True, rest="read_file gives it") for title, text in around.told),
        Part("Research so far", research, 5, data=True, rest="read_research gives a topic"),
        Part(
            f"Work in progress (uncommitted, {_left_by(session.task)})",
            around.work_in_progress,
            3,
            data=True,
            rest="`git diff` shows all of it",
        ),
        Part("Questions", around.questions),
        Part("Languages here", "\n".join(map(bullet, around.languages))),
        Part("Budget and circuits", around.limits),
    ]


def _refused(session: Session) -> Part:
    """Return the refusals of the last conversation, without a task that a person gave up."""
    subject, text = session.dialogue.refused
    task = session.tree.task(subject)
    kept = text if task is None or not task.given_up else ""
    return Part(f"Refused at the end of the last conversation ({subject})", kept, 1, data=True)


def _left_by(task: Task | None) -> str:
    if task and task.reasons:
        return "left by the failed attempts; keep what is right"
    return "from before an interruption; continue it"


def _task_parts(session: Session, spec: Specification | None, around: Surroundings) -> list[Part]:
    """Return the task in progress, the files it builds on, and its facts that the component's part lacks."""
    task = session.task if session.step is Step.ITERATE_THROUGH_TASKS else None
    if task is None:
        return list(around.task_files.parts)
    lines = [task_lines(task), f"verifications, in this order: {', '.join(around.verifications)}"]
    parts, component = [Part("Your task", "\n".join(lines))], _component(session)
    if spec is not None and component is not None and not _share_criteria(component):
        parts += _criteria("task", spec, component.criteria_of(task))
    if spec is not None and component is not None and not _share_sections(component):
        parts += _sections(spec, component, task)
    return [*parts, *around.task_files.parts]


def _opening(session: Session) -> str:
    if session.step is Step.DRAFT_SPECIFICATION:
        return "Draft the specification, record it with `write_spec`, and record its plan."
    if session.step in PLANNING_STEPS:
        now = f"You are in step {number(session.step)}, {session.step.value}. Record its result"
        last = session.step is Step.BREAK_INTO_TASKS
        return f"{now}." if last else f"{now}, then those of the steps after it, up to step 5."
    task = session.task
    return f"Do task {task.id if task else ''} and complete it."
