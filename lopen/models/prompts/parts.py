"""The parts of a prompt, the session's state among them, and how they are cut to size. Pure.

Parts of lower priority are cut first, and every cut is said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lopen.core.escape import UNSEEN
from lopen.workflow.session import GUIDANCE, Session
from lopen.workflow.steps import number, phase_of
from lopen.workflow.task_tree import Component, Task, next_task, progress

CHARS_PER_TOKEN = 4  # a rough measure; the endpoint's own count settles budgets
LONGEST_TITLE = 200
NEWLINE = "\n"
NOTE_CHARS = 100  # about what saying a cut costs
SMALLEST_PIECE = 200  # characters; less of a part is not worth its title
_UNSEEN = rf"[\s\x00-\x1f\x7f{UNSEEN}]*"  # a tag may hide behind it
_FENCE = re.compile(rf"<(?={_UNSEEN}/?{_UNSEEN}lopen-data\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Part:
    """A titled piece of text. `priority` 0 is never cut; the highest number goes first.

    `data` marks text that comes from the repository or a person: it is fenced, and said to be data.
    `rest` says how the model gets the part that was cut.
    """

    title: str
    text: str
    priority: int = 0
    data: bool = False
    rest: str = ""

    def rendered(self) -> str:
        """As it stands in the prompt."""
        if not self.data:
            return f"## {self.title}\n{_fenced(self.text)}"
        label = _label(self.title)
        return f"## {label}\n<lopen-data>\n{_fenced(self.text.removesuffix(NEWLINE))}\n</lopen-data>"


def _fenced(text: str) -> str:
    """`text` in which no tag can open or close a fence: only the angle bracket of such a tag is replaced."""
    return _FENCE.sub("&lt;", text)


def bullet(text: str) -> str:
    """Return `text` as one entry of a list. Later lines are indented, so that none is a title."""
    return "- " + indented(text)


def indented(text: str) -> str:
    """Return `text` with every line but the first one moved in."""
    return "\n  ".join(text.splitlines())


def _label(title: str) -> str:
    """Return a title on one line: headings and paths are data too."""
    return _fenced(" ".join(title.split())[:LONGEST_TITLE])


def fit(parts: Sequence[Part], limit: int) -> tuple[Part, ...]:
    """Return `parts` in their order with about `limit` characters of text, and one part more that names the omissions.

    The least important parts shrink first. A part with too little room left is emptied: a title and a fence around
    nothing would only cost.
    """
    kept = list(parts)
    excess = sum(len(p.text) for p in kept) - limit
    for index in sorted(range(len(kept)), key=lambda i: (-kept[i].priority, -i)):
        if excess <= 0:
            break
        part = kept[index]
        if part.priority == 0 or not part.text:
            continue
        room = len(part.text) - excess - NOTE_CHARS
        kept[index] = cut(part, room) if room >= SMALLEST_PIECE else replace(part, text="")
        excess -= len(part.text) - len(kept[index].text)
    return (*kept, _gone([p for p, k in zip(parts, kept, strict=True) if p.text and not k.text]))


def _gone(parts: Sequence[Part]) -> Part:
    named = (f"{_label(p.title)} ({_fenced(p.rest)})" if p.rest else _label(p.title) for p in parts)
    return Part("Left out for size", "; ".join(named))


def cut(part: Part, room: int) -> Part:
    """`part` with its text cut to `room` characters at a line's end, and the cut said."""
    if len(part.text) <= room:
        return part
    head = part.text[:room]
    head = head[: head.rfind("\n") + 1] if "\n" in head else head
    said = f"[cut here: {len(part.text) - len(head)} of {len(part.text)} characters left out"
    said += f"; {part.rest}]" if part.rest else "]"
    return replace(part, text=head + said)


def joined(parts: Sequence[Part]) -> str:
    """The parts that hold text, one after another."""
    return "\n\n".join(p.rendered() for p in parts if p.text.strip())


DECIDED = "Decisions that hold"
TASKS_BEFORE, TASKS_AFTER = 10, 30  # of a long component's tasks, those around the next one are listed


def decisions(session: Session) -> tuple[str, ...]:
    """Return a person's answers, and the assumptions where nobody answered."""
    answers = (decision(asked, given) for asked, given in session.dialogue.answers)
    return (*answers, *map(indented, session.dialogue.assumptions))


def decision(asked: str, given: str) -> str:
    """Return a person's answer, or their guidance, as the model is told it."""
    said = "The person says:" if asked == GUIDANCE else f"{asked.strip()} The person answered:"
    return indented(f"{said} {given.strip()}")


def decision_lines(session: Session) -> str:
    """The decisions that hold, as a list."""
    return "\n".join(f"- {line}" for line in decisions(session))


def state_lines(session: Session, established: frozenset[str]) -> str:
    """The state of the session in a few lines. `established`: the criteria that verdicts found to hold."""
    done, step = progress(session.tree), session.step
    lines = [f"module: {session.module}", f"step: {number(step)} {step.value} ({phase_of(step)})"]
    if session.tree.components:
        met = len(established & session.plan.criteria.keys())
        lines += [
            f"judged to hold so far: {met} of {len(session.plan.criteria)} acceptance criteria",
            f"complete: {done.components_done} of {done.components} components, {done.tasks_done} of {done.tasks} tasks",
        ]
    return "\n".join(lines)


def task_lines(task: Task) -> str:
    """The task with its id, description and checklist."""
    lines = [f"id: {task.id}", f"name: {task.name}"]
    lines += [f"description: {indented(task.description)}"] if task.description else []
    lines += [f"{n}. [{'x' if s.done else ' '}] {s.name}" for n, s in enumerate(task.subtasks, 1)]
    if task.reasons:
        lines.append("Failed attempts in a row. Their reasons, oldest first:")
        lines += map(bullet, task.reasons)
    return "\n".join(line for line in lines if line)


def plan_lines(session: Session) -> str:
    """The plan as an excerpt: components with their state, and of the selected one the tasks around the next.

    Empty where the task in progress is all of it.
    """
    if session.task is not None and sum(1 for _ in session.tree.tasks) == len(session.tree.components) == 1:
        return ""
    lines = []
    for component in session.tree.components:
        lines.append(f"- {component.name} ({component.id}): {component.state.value}")
        if component.id == session.plan.selected:
            lines += _tasks_around(component)
    return "\n".join(lines)


def _tasks_around(component: Component) -> list[str]:
    tasks, current = component.tasks, next_task(component)
    at = tasks.index(current) if current else 0
    first, after = max(0, at - TASKS_BEFORE), at + TASKS_AFTER
    lines = [f"  - {t.id} {t.name}: {t.state.value}" for t in tasks[first:after]]
    before, behind = first, max(0, len(tasks) - after)
    return [
        *([f"  - ({before} earlier tasks)"] if before else []),
        *lines,
        *([f"  - ({behind} later tasks)"] if behind else []),
    ]
