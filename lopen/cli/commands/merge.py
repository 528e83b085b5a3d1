"""`lopen merge`: merge a module's branch after the verify commands passed on the result."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lopen.application.command_context import CommandContext
from lopen.cli.command import command
from lopen.cli.parameters import ModuleArgument, branches
from lopen.core.errors import ExitCode, LopenError

if TYPE_CHECKING:
    from lopen.application.merging import PreparedMerge
    from lopen.store.sessions import SessionStore
    from lopen.tools.verification import Verified
    from lopen.workflow.session import Session

IntoOption = Annotated[
    str | None,
    typer.Option(
        "--into",
        metavar="BRANCH",
        help="Merge into this branch (default: where the module's began).",
        autocompletion=branches,
    ),
]


@command
def merge(context: CommandContext, module: ModuleArgument, into: IntoOption = None) -> ExitCode:
    """Merge the branch of a complete module, after its verify commands passed on the result of the merge.

    They run in a clone of their own. Your files and branches change only when all have passed.
    """
    from lopen.application import merging
    from lopen.application.open_store import open_store
    from lopen.application.person_only import require_person
    from lopen.application.workplaces import temporary_workplace
    from lopen.sandbox.known_secrets import KnownSecrets
    from lopen.store.folder import module_lock

    require_person("merge", context.root)
    store, session = complete_session(context.root, open_store(context), module)
    loaded = context.load()
    secrets = KnownSecrets(context.root, os.environ)
    with (
        module_lock(context.root, module),
        temporary_workplace(context.root, loaded.settings, secrets) as place,
    ):
        found = merging.prepare(place, session, into)
        if found is None:
            context.emit("merged", session=session.id, branch=session.branch, commit=None)
            context.say(f"{session.branch} is merged already")
            return ExitCode.OK
        merging.check_clean(place.person, found)
        with merging.merge_result(context, loaded, store, session, place, found) as results:
            verified = [_passed(context, session, found, name, result) for name, result in results if result]
        if not verified:
            context.warn(f"{module} has no verify commands: nothing was run on the result")
        merging.accept(place, found)
    context.emit(
        "merged",
        session=session.id,
        branch=found.branch,
        into=found.target,
        commit=found.commit,
        verified=verified,
    )
    context.say(f"merged {found.branch} into {found.target} at {found.commit[:12]}")
    context.say(f"to delete the branch: git branch -d {found.branch}")
    return ExitCode.OK


def complete_session(root: Path, store: SessionStore, module: str) -> tuple[SessionStore, Session]:
    """Return the module's newest session, which must be complete, with the store that holds it.

    Raises:
        LopenError: the module has none, or it is not complete.
    """
    from lopen.application.open_store import store_of
    from lopen.specification.modules import find_modules, require_known

    store = store_of(store, module)
    session = store.latest(module=module, unfinished=True) or store.latest(module=module)
    if session is None:
        require_known(module, find_modules(root))
        raise LopenError(f"{module} has no session", hint=f"to build it: lopen run {module}")
    if not session.finished:
        raise LopenError(f"{module} is not complete", hint=f"go on with: lopen resume {session.id}")
    if session.branch is None:
        raise LopenError(f"{module} has no branch: its work was not committed", hint="see: git status")
    return store, session


def _passed(
    context: CommandContext, session: Session, merge: PreparedMerge, name: str, result: Verified
) -> str:
    """Say how a verify command ended; return its name if it passed.

    Raises:
        LopenError: it did not pass.
    """
    context.emit(
        "verification_ran", session=session.id, tool=result.tool, command=result.command, passed=result.passed,
        exit_code=result.exit_code, output=result.output,
    )  # fmt: skip
    if not result.passed:
        context.say(result.output.rstrip())
        raise LopenError(
            f"{name} did not pass on the merge of {merge.branch} into {merge.target}: {result.command}",
            hint=result.hint or f"nothing was merged; to see both together: git merge {merge.branch}",
        )
    context.say(f"{name} passed: {result.command}")
    return name
