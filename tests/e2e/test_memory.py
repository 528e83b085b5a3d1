"""`.lopen/` stays small by itself, and what was archived is shown as before."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta

from lopen.store.archives import archive_session
from lopen.store.database import Database
from lopen.store.sessions import SessionStore
from tests.e2e.conftest import MakeProject
from tests.project import Project, build, plan
from tests.store.history import lived


def with_a_past(project: Project, sessions: int) -> list[str]:
    """Finished sessions of another module, an hour apart until an hour ago, and a log that was let grow."""
    path = project.root / ".lopen" / "state.db"
    ids = []
    with closing(Database(path)) as database:
        store = SessionStore(database)
        for n in range(sessions):
            at = datetime.now(UTC) - timedelta(hours=sessions - n)
            ids.append(f"old-{at:%Y%m%d}-{n + 1}")
            lived(store, ids[-1], module="old", task=f"old-t{n + 1}", at=at)
    log = path.parent / "logs" / "hooks.jsonl"
    log.parent.mkdir()
    log.write_text("{}\n" * 1_500, "utf-8")
    return ids


def archive(project: Project, session: str) -> None:
    """Move a finished session into its archive, as a cleanup does."""
    with closing(Database(project.root / ".lopen" / "state.db")) as database:
        archive_session(SessionStore(database), session, datetime.now(UTC))


def test_a_run_cleans_by_itself_and_archived_sessions_are_shown_as_before(make_project: MakeProject) -> None:
    project = make_project([plan(), build("calc-t1")])
    project.specify()
    past = with_a_past(project, 12)

    ran = project.drive()

    assert ran.code == 0, ran.err
    own = ran.events[-1]["session"]
    listed = project.lopen("session", "list", "--json").named("session")
    archived = [line["session"] for line in listed if line["status"] == "archived"]
    assert archived == [past[2], past[1], past[0]]
    assert {line["session"] for line in listed} == {own, *past}
    assert len(list((project.root / ".lopen" / "logs").glob("hooks.*.jsonl.gz"))) == 1

    shown = project.lopen("status", past[0], "--json").named("status")[0]
    assert (shown["module"], shown["status"], len(shown["verdicts"])) == ("old", "complete", 1)
    assert shown["components"][0]["tasks"][0]["id"] == "old-t1"
    told = project.lopen("log", past[0], "--json")
    assert [event["event"] for event in told.events] == [*["tool_ended"] * 3, "verdict_given", "notice"]
    resumed = project.lopen("resume", past[0])
    assert (resumed.code, "is archived; it cannot be resumed" in resumed.err) == (1, True)

    log = (project.root / ".lopen" / "logs" / "lopen.jsonl").read_text("utf-8").splitlines()
    events = [json.loads(line) for line in log]
    assert {event["session"] for event in events} == {own}
    assert events[-1]["event"] == "session_complete"

    report = project.lopen("memory", "--json").named("memory")[0]
    assert (report["sessions"], report["archived"], report["limit"]) == (10, 3, 5 * 1024 * 1024)
    assert report["counted"] < report["limit"]
    assert report["last"]["sessions_archived"] == 3


def test_a_finished_module_is_known_to_be_complete_when_its_session_is_archived(
    make_project: MakeProject,
) -> None:
    project = make_project([plan(), build("calc-t1")])
    ran = project.build_module()
    session = ran.events[-1]["session"]
    archive(project, session)
    archives = list((project.root / ".lopen" / "session_archives").glob(f"*/{session}.json.gz"))
    assert len(archives) == 1
    again = project.lopen("run", "calc")
    assert (again.code, "complete" in again.out) == (0, True), again.err
    assert project.status()["session"] == session
    assert "calc: complete, 1/1 tasks" in project.lopen("status").out
    deleted = project.lopen("session", "delete", session)
    assert deleted.code == 0, deleted.err
    assert not archives[0].exists()
    assert project.lopen("status", session).code == 1
