"""Commands that name no module or session mean the only one that fits, and name them where several do."""

from __future__ import annotations

from tests.e2e.conftest import MakeProject
from tests.endpoint import tools
from tests.project import build, plan, specification

ASKS = tools(("ask_user", {"question": "Which name?", "default": "calc"}))


def test_a_module_is_built_and_merged_without_its_name(make_project: MakeProject) -> None:
    project = make_project([ASKS, plan(), build("calc-t1"), plan(), build("more-t1", "more")])
    nothing = project.lopen("run")
    assert (nothing.code, "no modules yet\n  to start one: lopen init MODULE" in nothing.err) == (2, True)
    project.specify()

    approved = project.lopen("approve", "--yes")
    assert approved.last_line == "next: lopen run calc", approved.err
    assert project.lopen("run").code == 3
    nobody = project.lopen("confirm")
    assert (nobody.code, "no session waits for a confirmation" in nobody.err) == (2, True)
    assert project.lopen("answer", "sum").last_line.startswith("next: lopen resume calc-")
    assert project.lopen("resume").code == 0
    project.specify("more", specification("more"))
    project.specify("other", specification("other"))

    several = project.lopen("run")
    assert (several.code, "several modules are left to build: more, other" in several.err) == (2, True)
    assert "several modules wait for your approval: more, other" in project.lopen("approve", "--yes").err
    merged = project.lopen("merge")
    assert "merged lopen/calc into main" in merged.out, merged.err
    assert "no module is complete and not merged" in project.lopen("merge").err
