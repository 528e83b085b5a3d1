"""The gate between step 1 and step 2: nothing but a person's approval of this exact specification opens it.

Passing it makes the module's branch and its first commit, which carries the specification and its research.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath

from lopen.base.errors import LopenError
from lopen.base.events import Committed, Event, Notice, SpecApproved
from lopen.documents.drift import section_hashes, spec_hash
from lopen.documents.spec import Specification
from lopen.git.branches import require_commit
from lopen.git.errors import OtherWork
from lopen.git.ignores import hide_state
from lopen.git.message import approval
from lopen.git.refs import Head
from lopen.git.repository import Repository, versioned
from lopen.guardrails.completion import OFFER
from lopen.loop.context import Ports
from lopen.loop.project_context import lacks
from lopen.workflow.decide import entered
from lopen.workflow.pauses import gate_pause
from lopen.workflow.session import Approval, Pause
from lopen.workflow.steps import Trigger


class DirtyTree(LopenError):
    """Uncommitted work lies in the tree where a module's branch is to begin."""


def at_gate(ports: Ports, spec: Specification) -> Pause | None:
    """Pass the gate if a person opened it for exactly this specification; else the pause that waits for it."""
    given = valid_approval(ports, spec)
    if given is None and ports.approver.approve(spec):
        given = valid_approval(ports, spec)
    if given is None:
        return gate_pause(
            ports.journal.session.module, "the specification passes `lopen check` and waits for approval"
        )
    pass_gate(ports, spec, given)
    missing = lacks(ports)
    if missing:
        ports.journal.tell(Notice("info", f"this repository lacks {', '.join(missing)}", OFFER))
    return None


def valid_approval(ports: Ports, spec: Specification) -> Approval | None:
    """The module's newest approval, if it is for this specification as it is now."""
    newest = ports.store.approval(spec.module)
    return newest if newest and newest.spec_hash == spec_hash(section_hashes(spec)) else None


def pass_gate(ports: Ports, spec: Specification, given: Approval) -> None:
    """Make the branch and its first commit, and stand in step 2."""
    if ports.commits and not ports.place.linked:
        require_commit(ports.repository.head(), spec.module)  # what costs least to mend is said first
    ports.asker.model.connect()  # nothing is changed for a model that cannot be asked
    told: list[Event] = [SpecApproved(given.who, given.note, given.spec_hash)]
    if ports.commits:
        told += begin_branch(ports, spec.module)
    else:
        ports.journal.change(start_commit=ports.repository.head().commit)
    take_approval(ports, given, *told)


def take_approval(ports: Ports, given: Approval, *told: Event) -> None:
    """Stand in step 2 with what was approved; nothing of the repository changes."""
    session = replace(ports.journal.session, approval=given, planned=dict(given.sections))
    decision = entered(session, Trigger.SPEC_APPROVED)
    ports.journal.save(decision.session, *told, *decision.events)
    ports.take_commands(given.commands)


def begin_branch(ports: Ports, module: str) -> list[Event]:
    """Put HEAD on the module's branch and make its first commit; each once, also if the process died between."""
    session, repository = ports.journal.session, versioned(ports.repository)
    branch = ports.settings.git.branch_prefix + module
    head = repository.head()
    if not on_own_branch(repository, session.id, branch):
        refuse_dirt(repository, module)
        ports.place.check_out_start(branch)
        head = repository.head()
    begin_at = require_commit(head, module)
    repository.identity()  # nothing is changed for nobody
    told: list[Event] = []
    if head.branch is None and not ports.place.linked:
        told.append(Notice("info", f"HEAD is detached; the branch starts at {begin_at[:12]}"))
    check_branch(repository, module, branch)
    told += _stacked(ports, head, branch, begin_at)
    if session.start_branch is None:
        ports.journal.change(start_branch=_start_branch(ports, branch))  # first: a crash must not forget it
    ports.place.ignore_state()
    hide_state(repository.layout)
    on = repository.branches.start(branch)
    ports.place.copy_documents(module)
    commit = approval_commit(ports, module, branch, on.commit or begin_at)
    ports.journal.change(branch=branch, start_commit=commit)
    return [*told, Committed(commit, f"docs({module}): approve specification", branch)]


def _stacked(ports: Ports, head: Head, branch: str, begin_at: str) -> Iterator[Notice]:
    """That the branch begins on another module's, whose work comes along: it may be meant, and is easily overlooked."""
    below = head.branch or ""
    if ports.place.linked or below == branch or not below.startswith(ports.settings.git.branch_prefix):
        return
    repository, module = versioned(ports.repository), ports.journal.session.module
    home = shlex.quote(repository.branches.likely_home(below) or "BRANCH")
    aside = f"git branch -m {branch} {repository.branches.free_name(branch)}"
    yield Notice(
        "info",
        f"{branch} begins on {below} at {begin_at[:12]}: what lies there comes along when it is merged",
        f"to begin elsewhere, stop and: git switch {home} && git checkout {branch} -- specs/{module} && "
        f"{aside} && lopen run {module} --new",
    )


def _start_branch(ports: Ports, branch: str) -> str | None:
    """What the person was on before the module's branch: now, or when an earlier session left it for that."""
    now = ports.place.user_branch()
    if now not in (None, branch):
        return now
    earlier = (ports.store.load(i).start_branch for i in ports.store.ids(module=ports.journal.session.module))
    return next((name for name in earlier if name), None)


def stand_on_branch(ports: Ports) -> None:
    """HEAD is on the session's branch before anything is paid for; one that was merged and deleted begins anew."""
    branch = ports.journal.session.branch
    if branch is None or on_branch(ports, branch):
        return
    repository = versioned(ports.repository)
    refuse_dirt(repository, ports.journal.session.module)
    repository.branches.start(branch)


def on_branch(ports: Ports, branch: str) -> bool:
    """Whether HEAD is on the session's branch; False where that is gone. Refuses to go on beside it."""
    repository = versioned(ports.repository)
    head = repository.head()
    if head.branch != branch and repository.branch_tip(branch) is not None:
        raise LopenError(
            f"HEAD is on {head.branch or 'no branch'}, not on {branch}",
            hint=f"git {f'-C {shlex.quote(str(ports.root))} ' if ports.place.linked else ''}switch {branch}, then: lopen resume",
        )
    return head.branch == branch


def check_branch(repository: Repository, module: str, branch: str) -> None:
    """Refuse to begin on the module's branch while it holds work that the person's head has not."""
    try:
        repository.branches.check(branch)
    except OtherWork as error:
        error.hint = how_to_go_on(repository, module, branch)
        raise


def how_to_go_on(repository: Repository, module: str, branch: str) -> str:
    """The steps out where the module's branch holds work that is not merged, and the person went on elsewhere.

    The specification as it is here goes along. What lies open is committed first: git would not switch over it.
    """
    papers = f"specs/{module}"
    lie_open = repository.dirty(lambda path: not path.startswith((f"{papers}/", ".lopen/")))
    paths = shlex.join(dict.fromkeys(papers if p.startswith(papers) else p for p in lie_open))
    keep = [f"git add {paths}", f"git commit -m 'docs({module}): specify' -- {paths}"] if paths else []
    along = [*keep, f"git switch {branch}", f"git checkout @{{-1}} -- {papers}"]
    return (
        f"to go on with it: {' && '.join(along)}\n"
        f"to start afresh: git branch -m {branch} {repository.branches.free_name(branch)}\nthen: lopen run {module}"
    )


def on_own_branch(repository: Repository, session: str, branch: str) -> bool:
    """Whether HEAD is on the session's own branch already: its record was lost, what lies there is its work."""
    on_it = repository.head().branch == branch
    return on_it and bool(repository.session_commits(session, within=branch))


def approval_commit(ports: Ports, module: str, branch: str, parent: str) -> str:
    """The branch's first commit; the one that is there, if the process died after it."""
    session, repository = ports.journal.session, versioned(ports.repository)
    made = [c.sha for c in repository.session_commits(session.id, within=branch) if c.task is None]
    if made:
        repository.align_index()
        return made[0]
    text = approval(module=module, session=session.id, convention=ports.settings.git.convention)
    return repository.commit(repository.snapshot(), parent, text, branch)


def refuse_dirt(repository: Repository, module: str) -> None:
    """Work that is not lopen's must not slip into its commits: name it, and do nothing."""

    def harmless(path: str) -> bool:
        parts = PurePosixPath(path).parts
        return parts[:1] == (".lopen",) or parts[:2] == ("specs", module)

    dirty = repository.dirty(harmless)
    if dirty:
        listed = "".join(f"\n  {path}" for path in dirty[:20])
        more = f"\n  and {len(dirty) - 20} more" if len(dirty) > 20 else ""
        raise DirtyTree(
            f"uncommitted work lies in {repository.root}:{listed}{more}",
            hint="commit or stash it there (git stash -u), then run again",
        )
