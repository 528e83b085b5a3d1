"""Completion: accepted exactly where both verifications passed on the work tree as it is now.

Real git, the real verifier; the model, the judge and the commands do whatever hypothesis thinks of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lopen.judge.judging import BoundaryVerdict
from lopen.judge.verdict import Scope
from lopen.sandbox.command import CommandResult
from lopen.store.database import Database
from lopen.tools.calls import ToolResult
from lopen.tools.workbench import IterationEvidence
from tests.models.prompts.examples import planned
from tests.tools.examples import Bench, bench, project, verdict

TASK = "calc-t1"
PATHS = ("code.py", "left.txt", "README")
CONTENTS = ("one\n", "two\n")
Kind = Literal["write", "outside", "delete", "command", "tests", "judge", "complete"]


@dataclass(frozen=True)
class Act:
    """One thing that happens. `leaves`: content that the command writes to `path`, "" for none."""

    kind: Kind
    path: str = PATHS[0]
    content: str = CONTENTS[0]
    passes: bool = True
    leaves: str = ""


ACTS = st.builds(
    Act,
    st.sampled_from(["write", "outside", "delete", "command", *["tests", "judge", "complete"] * 2]),
    st.sampled_from(PATHS),
    st.sampled_from(CONTENTS),
    st.sampled_from([True, True, False]),
    st.sampled_from(["", "", *CONTENTS]),
)


@dataclass
class Model:
    """What ought to be: files by path, and what each verification passed on."""

    files: dict[str, str] = field(default_factory=lambda: {"README": "Read me\n"})
    passed: dict[str, dict[str, str]] = field(default_factory=dict)
    ran: list[dict[str, str]] = field(default_factory=list)  # trees on which the tests passed

    @property
    def tree(self) -> dict[str, str]:
        """The files that count."""
        return dict(self.files)

    @property
    def complete(self) -> bool:
        return all(self.passed.get(t) == self.tree for t in ("verify_tests", "verify_task_completion"))

    def verified(self, tool: str, passes: bool) -> None:
        if passes:
            self.passed[tool] = self.tree
        else:
            self.passed.pop(tool, None)


@dataclass
class World:
    """The real thing, played the same acts."""

    bench: Bench
    root: Path
    verdict: bool = True

    def play(self, act: Act) -> ToolResult | None:
        path = self.root / act.path
        match act.kind:
            case "write":
                return self.bench.call("write_file", path=act.path, content=act.content)
            case "outside":
                path.write_text(act.content, "utf-8")
            case "delete":
                path.unlink(missing_ok=True)
            case "command":
                self._next(lambda _: path.write_text(act.content, "utf-8"), passes=True)
                return self.bench.call("run_command", command="make code")
            case "tests":
                self._next(
                    lambda room: act.leaves and (room / act.path).write_text(act.leaves, "utf-8"),
                    passes=act.passes,
                )
                return self.bench.call("verify_tests")
            case "judge":
                self.verdict = act.passes
                return self.bench.call("verify_task_completion", task_id=TASK)
            case "complete":
                return self.bench.call("update_task_status", task_id=TASK, status="complete")
        return None

    def _next(self, effect: Callable[[Path], object], *, passes: bool) -> None:
        def act(_: str, folder: Path) -> CommandResult:
            effect(folder)
            return CommandResult(exit_code=0 if passes else 1, output="1 passed" if passes else "1 failed")

        self.bench.sandbox.act = act

    def judge(self, scope: Scope, subject: str) -> BoundaryVerdict:
        return verdict(scope, subject, passed=self.verdict)


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_committed() -> Iterator[None]:
    """Accepted work stays in the work tree, so that all examples share one repository."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lopen.tools.task_completion._commit", lambda *_: "c" * 40)
        yield


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Database]]:
    """One repository and one database for all examples."""
    folder = tmp_path_factory.mktemp("freshness")
    with closing(Database(folder / "state.db")) as database:
        yield folder / "project", database


def fresh_world(shared: tuple[Path, Database]) -> World:
    root, database = shared
    if not root.exists():
        project(root)
    for path in PATHS:
        (root / path).unlink(missing_ok=True)
    (root / "README").write_text("Read me\n", "utf-8")
    with database.connection as connection:
        connection.execute("DELETE FROM verifications")  # of an earlier example
    world = World(None, root)  # type: ignore[arg-type]  # set at once, it needs the world's judge
    world.bench = bench(root, planned(), judge=world.judge, database=database)
    return world


@given(st.lists(ACTS, min_size=3, max_size=9))
@example(acts=[Act("write"), Act("tests"), Act("outside", content="two\n"), Act("judge"), Act("write")])
@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_completion_is_accepted_exactly_where_both_passed_on_the_tree_as_it_is(
    shared: tuple[Path, Database], acts: list[Act]
) -> None:
    world, model = fresh_world(shared), Model()
    for act in [*acts, Act("complete")]:
        result = world.play(act)
        match act.kind:
            case "write" | "outside" | "command":
                model.files[act.path] = act.content
            case "delete":
                model.files.pop(act.path, None)
            case "tests":
                # What the command leaves is in the room alone; one that passed is not run again
                again = model.tree in model.ran
                model.verified("verify_tests", act.passes or again)
                model.ran += [model.tree] if act.passes else []
            case "judge":
                model.verified("verify_task_completion", act.passes)
            case "complete":
                assert result is not None
                assert result.ok == model.complete, (acts, result.fields)
        if result is not None and act.kind != "complete":
            assert result.ok
    files = {p.name: p.read_text("utf-8") for p in world.root.iterdir() if p.name in PATHS}
    assert files == model.files


def both(world: World) -> None:
    """Verify and be judged, with success."""
    for act in (Act("tests"), Act("judge")):
        result = world.play(act)
        assert result is not None
        assert result.fields["passed"]


def accepted(world: World) -> bool:
    result = world.play(Act("complete"))
    assert result is not None
    return result.ok


def test_a_refusal_names_what_lacks_and_whether_it_was_ever_there(shared: tuple[Path, Database]) -> None:
    world = fresh_world(shared)
    refused = world.play(Act("complete"))
    assert refused is not None
    assert refused.fields["missing"] == ["verify_tests", "verify_task_completion"]
    assert refused.fields["hint"] == "run them now, in this order"
    both(world)
    world.play(Act("write"))
    refused = world.play(Act("complete"))
    assert refused is not None
    assert refused.outcome == "refused"
    assert refused.fields["hint"] == (
        "the work tree changed since verify_task_completion, verify_tests passed"
    )


def test_lopen_s_own_papers_make_nothing_stale(shared: tuple[Path, Database]) -> None:
    world = fresh_world(shared)
    both(world)
    logged = world.bench.call("log_research", topic="Rounding", summary="Half to even.", findings="IEEE 754")
    assert logged.fields == {"path": "specs/calc/RESEARCH-rounding.md"}
    assert accepted(world)
    (world.root / "specs/calc/RESEARCH-rounding.md").unlink()


def test_an_iteration_begins_with_nothing_verified(shared: tuple[Path, Database]) -> None:
    world = fresh_world(shared)
    both(world)
    world.bench.at = replace(world.bench.at, evidence=IterationEvidence())
    assert not accepted(world)


def test_a_run_that_collects_no_tests_is_a_failure_that_asks_for_one(shared: tuple[Path, Database]) -> None:
    world = fresh_world(shared)
    world.bench.sandbox.act = lambda *_: CommandResult(exit_code=0, output="Ran 0 tests in 0.000s\n\nOK")
    result = world.bench.call("verify_tests")
    assert result.ok
    assert result.fields["passed"] is False
    assert "write at least one test" in result.fields["hint"]
