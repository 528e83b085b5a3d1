"""The prompt of one iteration, as a value: the stable part first, byte for byte the same between turns and tasks.

Three system blocks: what never changes in a phase and what a component's tasks share, each with a cache mark,
then what belongs to this iteration. The other two of the four marks are the conversation's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lopen.documents.sections import Section, normalise_name
from lopen.documents.spec import ACCEPTANCE_CRITERIA, DEPENDENCIES, OVERVIEW, SKILLS_AND_HOOKS, Specification
from lopen.llm.messages import SystemBlock
from lopen.prompts.parts import CHARS_PER_TOKEN, Part, bullet, fit, joined
from lopen.prompts.state_text import DECIDED, decision_lines, plan_lines, state_lines, task_lines
from lopen.prompts.templates import template
from lopen.workflow.session import Session
from lopen.workflow.steps import PLANNING_STEPS, Step, number
from lopen.workflow.task_tree import Component, Task

SHARED_CHARS = 24_000  # sections up to this size are given whole, the same to every task of a component
SECTION_CHARS = 40_000  # of longer ones a prompt carries at most this much; `read_spec` gives the rest


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The project's part of the prompt, gathered by the loop.

    `languages`: name, version and tools found here. `conventions`: (path, text) of AGENTS.md or CLAUDE.md.
    `research`: (topic, excerpt). `work_in_progress`: the uncommitted diff after an interruption, else "".
    `limits`: budgets and circuits now; `bounds`: the limits that shape the work, the same in all of a session.
    `warnings`: those of the last accepted verdict on the component. `task_files`: what the task builds on.
    `set_up`: what the repository lacks for its quality gates, in planning. `versioned`: the model may know of git.
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
    set_up: str = ""
    warnings: Sequence[str] = ()
    task_files: Sequence[Part] = ()
    versioned: bool = True


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
    context_tokens: int,
    templates: str = "",
    request: str = "",
) -> Prompt:
    """The prompt for the session's step. `request` is the person's own words (`--prompt`)."""
    shared = _shared(session, spec)
    own = _own(session, spec, around, request)
    # The endpoint knows best what is too long: each level halves what would really be sent.
    whole = min(context_tokens * CHARS_PER_TOKEN, sum(len(p.text) for p in (*shared, *own)))
    fitted = fit([*shared, *own], whole // 2**session.context_level)
    return Prompt(
        (
            SystemBlock(_stable(session.step, around, templates), cached=True),
            *([SystemBlock(text, cached=True)] if (text := joined(fitted[: len(shared)])) else []),
            SystemBlock(joined(fitted[len(shared) :])),
        ),
        _opening(session),
    )


def instructions(step: Step) -> str:
    """The name of the template with the step's instructions."""
    if step in PLANNING_STEPS:
        return "planning"
    if step is Step.DRAFT_SPECIFICATION:
        return "draft_specification"
    return "iterate_through_tasks"


def _stable(step: Step, around: Surroundings, templates: str) -> str:
    commands = "\n".join(f"- {name}: {command or 'none'}" for name, command in around.commands)
    parts = [
        Part("Verify commands of the approved specification", commands),
        Part("What commands may do", around.sandbox),
        Part("Limits that shape the work", "\n".join(map(bullet, around.bounds))),
        *(
            Part(f"Conventions of this repository ({path})", text, data=True)
            for path, text in around.conventions
        ),
    ]
    history = ("history",) if around.versioned else ()  # git.enabled = false hides git
    names = ("role", "constraints", *history, instructions(step))
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
    component = session.tree.component(session.selected) if session.selected else None
    outline = "\n".join(f"{'  ' * (s.level - 1)}- {s.title}" for s in spec.outline.sections)
    outline_part = Part(
        "Outline of the specification", outline, 5, data=True, rest="read_spec without a section"
    )
    parts = [decided, outline_part]
    if session.step is Step.ITERATE_THROUGH_TASKS and component is not None:
        return [*parts, *_component_parts(session, spec, component)]
    return [*parts, *_planning_parts(spec)]


def _component_parts(session: Session, spec: Specification, component: Component) -> list[Part]:
    return [
        Part("Component", f"{component.name} ({component.id})\n{component.description}", 1, data=True),
        *(_criteria("component", spec, component.criteria) if _share_criteria(component) else ()),
        *_shared_sections(spec, component),
    ]


def _share_criteria(component: Component) -> bool:
    """Every task is to meet all criteria of the component."""
    return all(component.criteria_of(task) == component.criteria for task in component.tasks)


def _criteria(whose: str, spec: Specification, ids: Sequence[str]) -> list[Part]:
    """The criteria of those ids in full, and the others by id alone."""
    shown = "\n".join(f"- {c.id}: {c.text}" for c in spec.criteria if c.id in ids)
    others = ", ".join(c.id for c in spec.criteria if c.id not in ids)
    return [
        Part(f"Acceptance criteria of this {whose}", shown, data=True),
        Part("Acceptance criteria of other work (read_spec shows them)", others),
    ]


def _task_criteria(session: Session, spec: Specification | None) -> list[Part]:
    """Return the criteria of the task in progress, where the shared part does not hold them."""
    component = session.tree.component(session.selected) if session.selected else None
    if spec is None or component is None or session.task is None or _share_criteria(component):
        return []
    return _criteria("task", spec, component.criteria_of(session.task))


def _shared_sections(spec: Specification, component: Component) -> list[Part]:
    """The sections of a component and all its tasks, unless they are long: then each task gets its own."""
    names = (*component.spec_sections, *(s for t in component.tasks for s in t.spec_sections))
    parts = section_parts(spec, named(spec, names or (OVERVIEW,)))
    return parts if _length(parts) <= SHARED_CHARS else []


def _task_sections(session: Session, spec: Specification | None) -> list[Part]:
    """Return the sections of the task in progress that the shared part does not hold."""
    component = session.tree.component(session.selected) if session.selected else None
    task = session.task
    if spec is None or component is None or task is None or _shared_sections(spec, component):
        return []
    names = task.spec_sections or component.spec_sections or (OVERVIEW,)
    return list(fit(section_parts(spec, named(spec, names)), SECTION_CHARS))


def _length(parts: Sequence[Part]) -> int:
    return sum(len(p.text) for p in parts)


def _planning_parts(spec: Specification) -> list[Part]:
    criteria = "\n".join(f"- {c.id}: {c.text}" for c in spec.criteria)
    said_elsewhere = {normalise_name(ACCEPTANCE_CRITERIA), normalise_name(SKILLS_AND_HOOKS)}
    chapters = [
        s for s in spec.outline.sections if s.level == 2 and normalise_name(s.title) not in said_elsewhere
    ]
    parts = section_parts(spec, chapters)
    more = []
    if _length(parts) > SHARED_CHARS:
        always = {normalise_name(OVERVIEW), normalise_name(DEPENDENCIES)}
        first = section_parts(spec, [s for s in chapters if normalise_name(s.title) in always])
        parts = list(fit(first, SECTION_CHARS))
        more = [Part("More sections", "The other sections are long: `read_spec` gives each of them.")]
    return [Part("Acceptance criteria", criteria, 0, data=True), *parts, *more]


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
    corrections = "\n".join(map(bullet, session.corrections))
    notes = "\n".join(map(bullet, session.notes))
    research = "\n".join(f"- {topic}: {excerpt}" for topic, excerpt in around.research)
    return [
        Part("Workflow state", state_lines(session)),
        *_task_parts(session, spec, around),
        _refused(session),
        Part("What the person asks for", request, data=True),
        Part("Told by lopen since the last prompt", notes),
        Part("Corrections", corrections),
        Part(
            "Warnings of the judge on the component's last task (mend them where your task touches them)",
            "\n".join(map(bullet, around.warnings)),
            3,
            data=True,
        ),
        Part("Plan", plan_lines(session), 4, rest="read_plan gives all of it"),
        Part("Files in the project", around.files, 6, data=True, rest="list_files gives more"),
        Part("Research so far", research, 5, data=True, rest="read_research gives a topic"),
        Part(
            f"Work in progress (uncommitted, {_left_by(session.task)})",
            around.work_in_progress,
            3,
            data=True,
            rest="`git diff` shows all of it" if around.versioned else "read_file gives the files",
        ),
        Part("Set-up of this repository", around.set_up),
        Part("Languages here", "\n".join(map(bullet, around.languages))),
        Part("Budget and circuits", around.limits),
    ]


def _refused(session: Session) -> Part:
    """What the last conversation left refused; not that of a task that a person gave up."""
    subject, text = session.refused
    task = session.tree.task(subject)
    kept = text if task is None or not task.given_up else ""
    return Part(f"Refused at the end of the last conversation ({subject})", kept, 1, data=True)


def _left_by(task: Task | None) -> str:
    if task and task.failures:
        return "left by the failed attempts; keep what is right"
    return "from before an interruption; continue it"


def _task_parts(session: Session, spec: Specification | None, around: Surroundings) -> list[Part]:
    """Return the task in progress with its criteria, its sections and the files it builds on."""
    task = session.task if session.step is Step.ITERATE_THROUGH_TASKS else None
    if task is None:
        return []
    return [
        Part("Your task", task_lines(task)),
        *_task_criteria(session, spec),
        *_task_sections(session, spec),
        *around.task_files,
    ]


def _opening(session: Session) -> str:
    if session.step is Step.DRAFT_SPECIFICATION:
        return "Draft the specification and record it with `write_spec`."
    if session.step in PLANNING_STEPS:
        now = f"You are in step {number(session.step)}, {session.step.value}. Record its result"
        last = session.step is Step.BREAK_INTO_TASKS
        return f"{now}." if last else f"{now}, then those of the steps after it, up to step 5."
    task = session.task
    return f"Do task {task.id if task else ''} and complete it."
