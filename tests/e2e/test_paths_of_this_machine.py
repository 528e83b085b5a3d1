"""Changed files that lead to places that only this machine has: a clone of the commit would not work elsewhere."""

from __future__ import annotations

from tests.e2e.conftest import MakeProject
from tests.endpoint import tool_results, tools
from tests.project import code, plan, verified

# A line of shell that makes a file, with what is found there: a severity, or nothing
MADE = {
    "real.py": ("printf 'def f():\\n    return 1\\n' > real.py", ""),
    "linked.py": ("ln -s $PWD/real.py linked.py", "error"),
    "out.py": ("ln -s ../$(basename $PWD)/real.py out.py", "error"),
    "other": ("ln -s /etc/hostname other", "error"),
    "within.py": ("ln -s real.py within.py", ""),
    "deep/within.py": ("mkdir deep; ln -s ../real.py deep/within.py", ""),
    "masked.service": ("ln -s /dev/null masked.service", ""),
    "reads.py": ("echo \"TABLE = '$PWD/table.txt'\" > reads.py", "warning"),
    "test_reads.py": ("echo \"import sys; sys.path.insert(0, '$PWD')\" > test_reads.py", "warning"),
    "setup.cfg": ("printf '[x]\\na = %s\\n' $PWD > setup.cfg", "warning"),
    "README.md": ('echo "See $PWD/docs." >> README.md', "warning"),
    "beside.py": ("echo \"X = '$PWD-2/table.txt', '/other$PWD/a'\" > beside.py", ""),
    "old.py": ("echo 'Y = 1' >> old.py", ""),
}


def test_paths_that_no_clone_has_are_found(make_project: MakeProject) -> None:
    made = [("run_command", {"command": line}) for line, _ in MADE.values()]
    project = make_project(
        [plan(), tools(*made, *code(), *verified("calc-t1"))], LOPEN_CIRCUIT__SEQUENTIAL_TOOL__THRESHOLD="100"
    )
    project.write("old.py", f"X = '{project.root}/x'\n")
    project.commit("Name a path")
    project.specify()

    project.drive()

    (found,) = [r.data for r in tool_results(project.requests[-1]) if r.tool == "verify_task_completion"]
    assert found["passed"] is False
    told = {
        f["path"]: f["severity"]
        for f in found["findings"]
        if "no part of the commit" in f["message"] or "only this machine" in f["message"]
    }
    assert told == {path: severity for path, (_, severity) in MADE.items() if severity}
    assert not [f for f in found["findings"] if "syntax" in f["message"]]
