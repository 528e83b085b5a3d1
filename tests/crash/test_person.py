"""A person's own commands, killed after each of their effects: done or not done, and said which."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.crash.building import Site, git
from tests.crash.conftest import Place

DIE = "tests.crash.faults:die"
BACKUP = "refs/lopen/backup/"


@dataclass(frozen=True)
class Effect:
    """Where a command is killed, and at which of its calls."""

    name: str
    where: str
    nth: int = 1


REVERTING = (
    Effect("the backup is made", "lopen.git.repository:Repository.backup"),
    Effect("the state is saved", "lopen.store.sessions:SessionStore.save", 2),
    Effect("files are put back", "lopen.git.work_tree:WorkTree.reset"),
    Effect("it is undone", "lopen.git.repository:Repository.reset_to"),
    Effect("the plan is drawn", "lopen.store.project_documents:write_plan"),
)


@pytest.mark.parametrize("effect", REVERTING, ids=[effect.name for effect in REVERTING])
def test_a_revert_cut_off_is_ended_or_told(effect: Effect, place: Place) -> None:
    site = place.site
    with site.project() as root:
        # Killed before its clone is removed, which so holds uncommitted work.
        assert (
            site.lopen(root, "run", "calc", arrange=[[DIE, "lopen.loop.run:finish", "before", 1]]).code == -9
        )
        head = tip(site, root)
        (site.clone(root) / "mine.txt").write_text("not committed\n", "utf-8")
        die = [DIE, effect.where, "after", effect.nth]
        killed = site.lopen(root, "revert", "calc", "--to", "calc-t1", arrange=[die])
        assert killed.code == -9, killed.ran.err

        said = site.lopen(root, "status").ran
        moved = tip(site, root) != head
        backups = git(root, site.environment, "for-each-ref", "--format=%(refname)", BACKUP).split()

        if moved:
            # The record has followed the branch, and the completed work that is gone is open again.
            assert set(site.found(root).complete) == {"calc-t1"}
            assert site.found(root).status == "paused"
            if site.lopen(root, "log", "--json").ran.named("reverted") and "was interrupted" in said.err:
                assert f"is now complete; backup: {backups[0]}" in said.err
        else:
            assert len(site.found(root).complete) == 2
            if "was interrupted" in said.err:
                assert f"backup: {backups[0]}; complete it with: lopen revert calc" in said.err
                assert site.lopen(root, "revert", "calc").code == 0
            else:  # nothing had been touched yet
                assert (site.clone(root) / "mine.txt").exists()
                assert site.lopen(root, "revert", "calc", "--to", "calc-t1").code == 0

        kept = git(root, site.environment, "for-each-ref", "--format=%(refname)", BACKUP).split()
        assert git(root, site.environment, "show", f"{kept[0]}:mine.txt") == "not committed"
        assert git(root, site.environment, "rev-parse", f"{kept[0]}^") == head
        assert len(site.lopen(root, "log", "--json").ran.named("reverted")) == 1
        assert git(root, site.environment, "status", "--porcelain") == ""
        assert site.lopen(root, "status").ran.err == ""
        assert site.resume(root).code == 0
        assert len(site.found(root).committed) == len(place.standard.found.committed)


def test_no_run_begins_over_files_that_are_half_reverted(place: Place) -> None:
    site = place.site
    with site.project() as root:
        assert site.lopen(root, "run", "calc", "--max-iterations", "2").code == 3
        die = [DIE, "lopen.git.work_tree:WorkTree.reset", "after", 1]
        (site.clone(root) / "calc.py").write_text("spoiled\n", "utf-8")
        assert site.lopen(root, "revert", "calc", arrange=[die]).code == -9
        asked = site.asked

        refused = site.lopen(root, "run", "calc")

        assert refused.code == 1
        assert "complete it with: lopen revert calc" in refused.ran.err
        assert site.asked == asked
        assert site.lopen(root, "revert", "calc").code == 0
        assert site.resume(root).code == 0


def test_an_approval_cut_off_is_there_or_not(place: Place) -> None:
    site, where = place.site, "lopen.store.sessions:SessionStore.remember_criteria"
    with site.project() as root:
        spec = root / "specs" / "calc" / "SPECIFICATION.md"
        spec.write_text(spec.read_text("utf-8") + "\nOne more line.\n", "utf-8")

        assert site.lopen(root, "approve", "calc", "--yes", arrange=[[DIE, where, "after", 1]]).code == -9

        assert site.lopen(root, "approve", "calc", "--yes").code == 0
        built = site.lopen(root, "run", "calc")
        assert built.code == 0, built.ran.err
        assert not site.found(root).damage


def tip(site: Site, root: Path) -> str:
    return git(root, site.environment, "rev-parse", "lopen/calc")
