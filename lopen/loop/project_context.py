"""The project's part of a prompt: conventions, the task's files, research, work in progress, limits."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path

from lopen.files.protection import ToolRefused
from lopen.git.trees import GITLINK
from lopen.judge.change import is_specification, kind, spoken_names
from lopen.judge.judging import open_remarks, required_tools, verdicts_of, widest_scope
from lopen.judge.rubric import EVIDENCE_TOKENS
from lopen.judge.verdict import established
from lopen.limits.budget import DEFAULT_TASK_TYPE, task_tokens
from lopen.limits.circuits import RuleBook
from lopen.loop.context import SessionContext
from lopen.loop.languages import installed, languages, named_part, outline
from lopen.models.prompts.parts import CHARS_PER_TOKEN, Part
from lopen.models.prompts.prompt import Surroundings, TaskFiles
from lopen.settings.schema import Settings
from lopen.specification.documents import DOCUMENTS, LARGE_DOCUMENT, lines_about
from lopen.specification.modules import topics
from lopen.tools.task_completion import TASK_VERDICT
from lopen.verification.findings import Finding
from lopen.verification.project_commands import detect, listing
from lopen.verification.run_files import is_lock_file, is_manifest
from lopen.verification.runners import shown_output
from lopen.workflow.next_step import standing_work
from lopen.workflow.session import MAX_CLARIFICATIONS, Session
from lopen.workflow.steps import PLANNING_STEPS, Step
from lopen.workflow.task_tree import Task

FILES_LISTED = 60  # beyond, a folder stands for its files
FILES_OF_A_TASK = 20  # where a plan names what the task needs
CONVENTION_CHARS = 12_000
TESTS_CHARS = 4_000
READMES = ("README.md", "README.rst", "README.txt", "README", "Readme.md", "readme.md")
_ABOUT_THE_PROJECT = (
    "readme",
    "changelog",
    "changes",
    "history",
    "news",
)  # they specify nothing where there is code
DIFF_CHARS = 20_000
LARGE_SOURCE = 12_000  # characters of source, which step 1 is shown by its outline
WHOLE_CHARS = 60_000  # of the files given whole, together
OUTLINE_CHARS = 20_000  # of the outlines
LARGE_OUTLINE = 4_000  # beyond, the outline of a file holds what is outermost in it
PLANNED_CHARS = 8_000  # of the outlines that a plan is made by
LISTED = 50  # files that are only named
HEADS_NEAR = 4  # of the outline, before and behind a named definition
MOST_SPOKEN = 10  # files that the task's words name
LOOKED_AT = 200  # files that are read for the prompt
_ORDER = {"source": 0, "test": 1, "other": 2}
CODE_CHARS_PER_TOKEN = 2.5  # at least: code is denser than prose, and an answer that is cut is paid twice


def conventions(root: Path, module: str) -> tuple[tuple[str, str], ...]:
    """The repository's own rules, nearest first: from the module's own folders up to the root, in each AGENTS.md,
    else CLAUDE.md. Links are not followed.
    """
    found: dict[str, str] = {}
    room = CONVENTION_CHARS
    for folder in ("specs/" + module, module, "src/" + module, "specs", "src", ""):
        for name in ("AGENTS.md", "CLAUDE.md"):
            path = f"{folder}/{name}" if folder else name
            text = _plain_text(root, path, room)
            if text is not None:
                found[path] = text
                room -= len(text)
                break
    return tuple(found.items())


def _plain_text(root: Path, path: str, room: int) -> str | None:
    """At most `room` characters of a file that no link leads to; None where there is none, or no room is left."""
    place = root / path
    if room <= 0 or not place.is_file() or os.path.realpath(place) != os.path.realpath(root) + "/" + path:
        return None
    with place.open(encoding="utf-8", errors="replace") as file:
        text = file.read(room + 1)
    return text if len(text) <= room else text[:room] + "\n[cut here; read_file gives the rest]"


def _excerpt(path: str, text: str, request: str) -> tuple[str, str]:
    """Return as title and text the lines of a document that matter for the request, with their numbers, or all of it."""
    lines, shown = text.splitlines(), lines_about(path, text, request)
    if len(shown) == len(lines):
        return path, text.strip()
    return f"Of {path}", "\n".join(f"{n}: {lines[n - 1]}" for n in shown)[:LARGE_DOCUMENT]


def project_told(context: SessionContext, shown: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield, as title and text, the project's README unless it is shown, and how its tests stand before any work.

    No command is approved yet: the tests run under bubblewrap alone, where they reach no network and nothing else.
    """
    project, request = context.project, context.record.journal.session.dialogue.request
    found = ((path, _plain_text(project.root, path, CONVENTION_CHARS * 5)) for path in READMES)
    told = (_excerpt(path, text, request) for path, text in found if text)
    yield from islice((each for each in told if each[0] not in shown), 1)
    command = project.test_command or detect(listing(project.root)).commands["verify-tests"]
    if command is not None and project.sandbox.name == "bwrap" and project.has_tests():
        ran = project.verifier.surveyed(command)
        title = f"The existing tests, run once by lopen without verify-setup: `{command}`, {ran.result}"
        yield title, shown_output(ran.output, passed=ran.passed)[-TESTS_CHARS:]


def questions(settings: Settings, session: Session) -> str:
    """Say who answers `ask_user` in this run; empty where it is not offered."""
    if session.step not in {*PLANNING_STEPS, Step.DRAFT_SPECIFICATION}:
        return ""
    if settings.workflow.unattended:
        return "Nobody answers questions in this run: decide by yourself. `ask_user` returns your own default and records it as an assumption."
    if session.step is Step.DRAFT_SPECIFICATION:
        return "`ask_user` reaches a person: use it where the answer decides what gets built, one clear question at a time."
    if left := max(0, MAX_CLARIFICATIONS - session.dialogue.clarifications):
        often = "one question" if left == 1 else f"{left} questions"
        return f"`ask_user` reaches a person for {often} more in this session: use it where a missing fact changes what gets built."
    return (
        "The questions of this session are used up: decide by yourself. `ask_user` returns your own default."
    )


def work_in_progress(context: SessionContext, shown: Collection[str]) -> str:
    """Return the diff of the task in progress against HEAD.

    New files that are `shown` whole are only named.
    """
    session, repository = context.record.journal.session, context.project.repository
    tree = context.project.verifier.tree()
    base = context.committed_tree()
    changed = [c for c in repository.changes(base, tree) if _is_work(c.path, session.module)]
    new = [c.path for c in changed if c.kind == "added" and c.path in shown]
    paths = [c.path for c in changed if c.path not in new]
    diff = repository.diff(base, tree, paths=paths, max_chars=DIFF_CHARS) if paths else ""
    return "\n".join(filter(None, (f"New files, shown above: {', '.join(new)}" if new else "", diff)))


def task_files(context: SessionContext) -> TaskFiles:
    """Return the files that the task in progress names and the documents that its words name, and outlines of other
    files that these name or its component's work changed. `docs/api.md#Heading` names a section, `src/shop.py#Cart.total` a definition.
    """
    session = context.record.journal.session
    if session.task is None:
        return TaskFiles()
    spoken = _spoken(context, _stated(session, session.task))
    in_part = {path.partition("#")[0] for path in session.task.files if "#" in path}
    documents = [path for path in spoken if path.lower().endswith(DOCUMENTS) and path not in in_part]
    return _shown(context, (*session.task.files, *documents), (*spoken, *_changed(context, session)))


def requested_files(context: SessionContext) -> TaskFiles:
    """Return the files that the person's request names, those of a folder that it names as `docs/`, and manifests."""
    request = context.record.journal.session.dialogue.request
    folders = tuple(word.strip("`'\"(") for word in request.split() if word.rstrip("`'\",.;:)").endswith("/"))
    paths = context.project.workspace.list_files().files
    below = [p for p in paths if p.startswith(tuple(f.rstrip("`'\",.;:)") for f in folders))]
    manifests = [p for p in paths if is_manifest(p) and not is_lock_file(p) and "/" not in p]
    about = [p for p in _spoken(context, [request]) if _about_the_project(context, p)]
    wanted = [p for p in (*_spoken(context, [request]), *below, *manifests) if p not in about]
    large = [
        p for p in wanted if not p.lower().endswith(DOCUMENTS) and len(_text(context, p) or "") > LARGE_SOURCE
    ]
    shown = _shown(context, [p for p in wanted if p not in large], large)
    excerpts = [_excerpt(p, _text(context, p) or "", request) for p in about]
    parts = (_file_part(title, text) for title, text in excerpts)
    return TaskFiles((*shown.parts, *parts), (*shown.whole, *(title for title, _ in excerpts)))


def _about_the_project(context: SessionContext, path: str) -> bool:
    """Tell whether a document only tells of code that is there: beside tests, a README or a changelog."""
    stem = path.rpartition("/")[2].partition(".")[0].casefold()
    return stem in _ABOUT_THE_PROJECT and context.project.has_tests()


def _shown(context: SessionContext, wanted: Sequence[str], others: Sequence[str]) -> TaskFiles:
    """Return the wanted files whole while they fit; else, as of the others, their outlines, or their names."""
    whole: dict[str, Part] = {}
    outlines, named = [], []
    parts_of: dict[str, list[str]] = {}  # file → its parts that are shown
    room, outline_room = WHOLE_CHARS, OUTLINE_CHARS
    wanted = [_address(context, path) for path in wanted]
    paths = list(dict.fromkeys((*wanted, *others)))
    for path in paths[:LOOKED_AT]:
        text = _text(context, path)
        if text is None:
            continue
        if path in wanted and len(text) <= room:
            room -= len(text)
            whole[path] = _file_part(f"File: {path}", text)
            file, _, part = path.partition("#")
            parts_of.setdefault(file, []).append(part)
            continue
        if path in parts_of:
            continue
        shown = outline(path, text, most=LARGE_OUTLINE) if outline_room > 0 else None
        if shown and len(shown) <= outline_room:
            outline_room -= len(shown)
            outlines.append(_outline_part(path, text, shown))
        else:
            outline_room = 0  # small files come first: later ones would hardly fit
            named.append(f"{path} ({len(text)} characters)")
    for file, parts in parts_of.items():
        if near := _near(context, file, [part for part in parts if part]):
            outlines.append(_file_part(f"Outline of {file} near it", near))
    named += paths[LOOKED_AT:]
    if len(named) > LISTED:
        named[LISTED:] = [f"and {len(named) - LISTED} more"]
    rest = _file_part("Files that this work builds on and that did not fit", "\n".join(named))
    return TaskFiles((*whole.values(), *outlines, rest), tuple(whole))


def named_outlines(context: SessionContext) -> TaskFiles:
    """Return the outlines of the files that the specification names: a plan says by them which parts its tasks need."""
    spec = context.project.load_spec(context.record.journal.session.module)
    parts, room = [], PLANNED_CHARS
    for path in _spoken(context, [spec.text]):
        text = _text(context, path)
        shown = outline(path, text, most=LARGE_OUTLINE) if text else None
        if text and shown and "\n" in shown and len(shown) <= room:
            room -= len(shown)
            parts.append(_outline_part(path, text, shown))
    return TaskFiles(tuple(parts))


def _outline_part(path: str, text: str, shown: str) -> Part:
    return _file_part(f"Outline of {path} ({len(text)} characters)", shown)


def _stated(session: Session, task: Task) -> tuple[str, ...]:
    """Return the words of the task and of its criteria."""
    owner = session.tree.owner(task.id)
    criteria = owner.criteria_of(task) if owner else ()
    return (task.description, *(session.plan.criteria.get(id, "") for id in criteria))


def _spoken(context: SessionContext, stated: Sequence[str]) -> list[str]:
    """Return the files that these texts name, where only one file has the name."""
    spoken = {name.casefold() for text in stated for name in spoken_names(text)}
    by_name: dict[str, list[str]] = {}
    for path in context.project.workspace.list_files().files:
        for name in {path.casefold(), path.casefold().rpartition("/")[2]} & spoken:
            by_name.setdefault(name, []).append(path)
    return list(dict.fromkeys(found[0] for found in by_name.values() if len(found) == 1))[:MOST_SPOKEN]


def _is_work(path: str, module: str) -> bool:
    """Tell whether the content of a file says something of the work: a lock file is written by a package manager."""
    return not is_specification(path, module) and not is_lock_file(path)


def _file_part(title: str, text: str) -> Part:
    return Part(title, text, 4, data=True, rest="read_file gives it")


def _text(context: SessionContext, path: str) -> str | None:
    """The text of a file, or of its section or definition that stands behind `#`; None where it is missing, protected or not text."""
    name, _, part = path.partition("#")
    try:
        text = context.project.workspace.text(name)
    except ToolRefused:
        return None
    if not part:
        return text
    lines = named_part(name, text, part)
    return "\n".join(text.splitlines()[lines[0] - 1 : lines[1]]) if lines else None


def _near(context: SessionContext, file: str, parts: Sequence[str]) -> str:
    """Return the outline of a source file around these definitions, which stand in it as shown; "" of a document."""
    text = context.project.workspace.text(file) if parts else ""
    heads = {int(head.partition(":")[0]): head for head in (outline(file, text) or "").splitlines()}
    if not heads or file.lower().endswith(DOCUMENTS):
        return ""
    near: set[int] = set()
    shown: dict[int, str] = {}  # first line of a part → what stands there
    for part in parts:
        first, last = named_part(file, text, part) or (0, 0)
        near |= {*[n for n in heads if n < first][-HEADS_NEAR:], *[n for n in heads if n > last][:HEADS_NEAR]}
        for inside in [n for n in heads if first <= n <= last]:
            shown[inside] = ""
        shown[first] = f"{first} to {last}: {part}, shown above"
    lines = {n: heads[n] for n in near} | shown
    return "\n".join(lines[n] for n in sorted(lines) if lines[n])


def _address(context: SessionContext, path: str) -> str:
    """Return the path of a file, with the section behind `#` where the file has one of that name."""
    return path if _text(context, path) is not None else path.partition("#")[0]


def _changed(context: SessionContext, session: Session) -> list[str]:
    """The files that differ from the tree the component began with: source before tests before the rest, small first."""
    component = session.tree.component(session.plan.selected or "")
    if component is None or component.base is None:
        return []
    repository = context.project.repository
    changes = repository.changes(component.base, context.project.verifier.tree())
    there = {c.path: c.after for c in changes if c.after and c.mode_after != GITLINK}
    sizes = repository.blob_sizes(there.values())
    paths = [p for p in there if _is_work(p, session.module)]
    return sorted(paths, key=lambda p: (_ORDER[kind(p)], sizes.get(there[p], 0), p))


def remark_line(finding: Finding) -> str:
    """Return a remark of the judge with its place."""
    place = f"{finding.path}{f':{finding.line}' if finding.line else ''}: " if finding.path else ""
    return place + finding.message


def bounds(settings: Settings, step: Step, book: RuleBook) -> tuple[str, ...]:
    """Return the limits that shape a plan and its work, in words; the same in every prompt of a session's phase."""
    calls = _call_bounds(book)
    answer = f"One answer holds about {settings.model.max_tokens * CODE_CHARS_PER_TOKEN:,.0f} characters in all its calls"
    if step is Step.ITERATE_THROUGH_TASKS:
        return (f"{answer}: write a larger piece of work in several turns.", *calls)
    of_task = task_tokens(settings.budget, DEFAULT_TASK_TYPE) if settings.budget.enabled else 0
    lines = [
        f"{answer}: a task of that size or less can be done in one turn.",
        f"The judge is shown about {EVIDENCE_TOKENS * CHARS_PER_TOKEN:,} characters of a task's change at once.",
        f"A task may use {of_task:,} tokens, all that its turns read and write." if of_task else "",
    ]
    return (*filter(None, lines), *calls)


def _call_bounds(book: RuleBook) -> tuple[str, ...]:
    """Return the circuits that a large batch of calls could trip."""
    most = [
        f"{rule.threshold if rule.over else rule.threshold - 1} {of}"
        for rule, of in (
            (book["sequential_tool"], "calls of one tool in a turn, writes and edits apart"),
            (book["rapid_fire"], f"calls in {book['rapid_fire'].window:g} s"),
        )
        if book.enabled and rule.enabled
    ]
    return (f"At most {' and '.join(most)}: more trip a circuit and cost time.",) if most else ()


def _verifications(context: SessionContext, session: Session) -> tuple[str, ...]:
    """Return the tools that the task in progress needs: of the widest boundary that it completes, the judge's apart."""
    if session.task is None:
        return ()
    scope, _ = widest_scope(session, "task", session.task.id)
    tools = required_tools(context.project.verifier, scope)
    fix = context.project.verifier.commands.get("verify-fix")
    first = (f"run_command `{fix}` (verify-fix)",) if fix else ()
    return (*first, *(t for t in tools if not t.endswith("_completion")), TASK_VERDICT)


def listed(files: Sequence[str], most: int) -> list[str]:
    """Return `most` lines at most: of more files than that, a folder with many stands for these."""
    if len(files) <= most:
        return list(files)
    count = Counter(path.rpartition("/")[0] for path in files)
    many = {folder for folder, files_in in count.items() if folder and files_in > most // 3}
    folders = ((path, path.rpartition("/")[0]) for path in files)
    lines = list(dict.fromkeys(f"{at}/ ({count[at]} files)" if at in many else path for path, at in folders))
    return lines if len(lines) <= most else [*lines[:most], "[and more; list_files gives the rest]"]


def surroundings(context: SessionContext) -> Surroundings:
    """Gathered for the session's step, now."""
    session = context.record.journal.session
    listing = context.project.workspace.list_files().files
    building, drafting = session.step is Step.ITERATE_THROUGH_TASKS, session.step is Step.DRAFT_SPECIFICATION
    most = FILES_OF_A_TASK if building else FILES_LISTED
    files_of = task_files if building else requested_files if drafting else named_outlines
    shown = files_of(context)
    told = tuple(project_told(context, shown.whole)) if drafting else ()
    whole = {*shown.whole, *(title for title, _ in told)}
    others = [p for p in listing if p not in whole and not is_specification(p, session.module)]
    files = listed(others, most)
    commands, root = context.project.verifier.commands, context.project.root
    return Surroundings(
        languages=()
        if building
        else languages(listing, commands, root) or (installed(root) if drafting else ()),
        commands=tuple(commands.items()),
        sandbox=context.project.sandbox_rules,
        conventions=conventions(root, session.module),
        files="\n".join(files) or ("(none)" if drafting else ""),
        research=tuple((t.name, t.excerpt) for t in topics(root / "specs" / session.module)),
        work_in_progress=work_in_progress(context, shown.whole) if building else "",
        verifications=_verifications(context, session),
        warnings=tuple(map(remark_line, open_remarks(context.record.store, session))) if building else (),
        limits=context.guards.meter.snapshot(near_only=True),
        bounds=bounds(context.settings, session.step, context.guards.meter.gate.book),
        task_files=shown,
        told=told,
        questions=questions(context.settings, session),
        established=established(verdicts_of(context.record.store, session.id), standing_work(session)),
    )
