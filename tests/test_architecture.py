"""The plan of the house, held: which way imports point, who may use which library, and what a command loads."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from scripts import figures

ROOT = Path(__file__).resolve().parent.parent
MODULES = figures.modules(ROOT)

# The rooms from the ground up: a module imports its own room and those before it (docs/architecture.md)
ROOMS = [
    *["lopen", "core"],
    *["settings", "workflow", "specification", "guardrails", "models"],
    *["store", "limits", "git", "files", "sandbox"],
    *["verification", "judge", "tools", "mcp"],
    *["loop", "example", "claude_hooks", "application", "queue", "server", "cli", "__main__"],
]
PURE = [
    "workflow",
    "specification",
    "guardrails",
    "judge",
    "verification",
]  # values in, values out
# What runs in those rooms
RUNNING = {
    f"lopen.verification.{name}"
    for name in (
        "clean_room",
        "extra_runs",
        "installed",
        "project_commands",
        "run_record",
        "test_startup.sitecustomize",
        "verifier",
        "verify_programs",
    )
}
PURE_MODULES = ["lopen.models.messages"]
PURE_PACKAGES = ("lopen.settings.schema", "lopen.models.prompts")

# Library → the modules (or rooms, ending in a dot) that import it
LIBRARIES = {
    "anthropic": ["lopen.models.sdk"],
    "httpx2": ["lopen.models.sdk"],
    "genai_prices": ["lopen.models.prices"],
    "git": ["lopen.git.command"],
    "transitions": ["lopen.workflow.next_step"],
    "markdown_it": ["lopen.specification.sections", "lopen.server.dashboard.gate"],
    "mdit_py_plugins": ["lopen.specification.sections"],
    "yaml": ["lopen.specification.spec"],
    "xxhash": ["lopen.core.hashing"],
    "tomlkit": ["lopen.settings.toml"],
    "redis": ["lopen.limits.redis_store"],
    "dbos": ["lopen.queue.engine"],
    "sqlalchemy": ["lopen.queue.shared"],
    "tree_sitter": ["lopen.verification.syntax"],
    "typer": ["lopen.cli."],
    "rich": ["lopen.cli.rendering.live"],
    "fastapi": ["lopen.server."],
    "starlette": ["lopen.server."],
    "uvicorn": ["lopen.server."],
    "mcp": ["lopen.mcp.sdk"],
    "anyio": ["lopen.mcp.sdk"],
    "pygments": ["lopen.server.dashboard.diff"],
    "prometheus_client": ["lopen.server.metrics"],
    # Validation of what comes from outside: configuration, the model's tool calls and verdicts, stored rows, requests
    "pydantic": [
        "lopen.settings.",
        "lopen.judge.verdict",
        "lopen.models.recording",
        "lopen.models.tool_calls",
        "lopen.tools.",
        "lopen.judge.submission",
        "lopen.judge.judged_tree",
        "lopen.store.",
        "lopen.server.",
    ],
}
# Files that pure rooms read; everything else of theirs takes values and gives values
READING = {
    "lopen.specification.modules",
    "lopen.models.prompts.templates",
}
EFFECTFUL = {
    "os",
    "subprocess",
    "socket",
    "sqlite3",
    "shutil",
    "tempfile",
    "time",
    "threading",
    "random",
    "http",
}
# What makes an adapter; the loop is only ever given one
MAKERS = {"AnthropicModel", "ReplayModel", "RecordingModel", "Recorder", "choose", "open_limits", "Database"}


@cache
def trees() -> dict[str, ast.Module]:
    """Return the parsed modules; only the test process that runs these tests parses them."""
    return {name: ast.parse(path.read_text("utf-8")) for name, path in MODULES.items()}


@cache
def graph() -> dict[str, set[str]]:
    """Return the modules that each module imports."""
    return figures.import_graph(MODULES)


def imported(tree: ast.AST) -> Iterator[str]:
    """Every module that the code imports, wherever the import stands."""
    return figures.imported(tree, MODULES)


def room(module: str) -> str:
    """The room of a module of lopen."""
    name = figures.room(module)
    assert name in ROOMS, f"{module} stands in no room: add it to ROOMS and to docs/architecture.md"
    return name


def of_lopen(tree: ast.AST) -> Iterator[str]:
    return (name for name in imported(tree) if name == "lopen" or name.startswith("lopen."))


def test_imports_point_one_way() -> None:
    wrong = [
        f"{module} imports {target}"
        for module, targets in graph().items()
        for target in targets
        if ROOMS.index(room(target)) > ROOMS.index(room(module))
    ]
    assert wrong == []


def test_no_modules_and_no_rooms_import_each_other_in_a_circle() -> None:
    assert figures.cycles(graph()) == []
    assert figures.cycles(figures.room_graph(graph())) == []


def test_cycles_are_found() -> None:
    assert figures.cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]


def test_nothing_lies_loose_at_the_top() -> None:
    assert sorted(path.name for path in (ROOT / "lopen").glob("*.*")) == [
        "__init__.py",
        "__main__.py",
        "py.typed",
    ]


def test_imports_are_absolute() -> None:
    relative = [
        m for m, tree in trees().items() for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.level
    ]
    assert relative == []


def test_each_library_is_imported_where_it_belongs() -> None:
    wrong = []
    for module, tree in trees().items():
        for name in imported(tree):
            library = name.partition(".")[0]
            if library == "lopen" or library in sys.stdlib_module_names:
                continue
            places = LIBRARIES.get(library, [])
            if not any(module == p or (p.endswith(".") and f"{module}.".startswith(p)) for p in places):
                wrong.append(f"{module} imports {library}")
    assert wrong == []


def calls(tree: ast.AST) -> Iterator[str]:
    """The names of what is called; `Repository.open` by both."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            yield f"{owner.id}.{node.func.attr}" if isinstance(owner, ast.Name) else f".{node.func.attr}"


def test_only_the_composition_root_brings_the_loop_and_adapters_together() -> None:
    meeting = {
        module
        for module, tree in trees().items()
        if (room(module) == "loop" or any(room(name) == "loop" for name in of_lopen(tree)))
        and {*calls(tree)} & {*MAKERS, "Repository.open"}
    }
    assert meeting == {"lopen.application.wiring"}


def test_pure_rooms_take_values_and_give_values() -> None:
    wrong = []
    for module, tree in trees().items():
        pure = room(module) in PURE or module in PURE_MODULES or module.startswith(PURE_PACKAGES)
        if not pure or module in READING | RUNNING:
            continue
        wrong += [
            f"{module} imports {name}" for name in imported(tree) if name.partition(".")[0] in EFFECTFUL
        ]
        for name in calls(tree):
            if name in ("open", "datetime.now", "date.today") or name.endswith((".read_text", ".write_text")):
                wrong.append(f"{module} calls {name}")
    assert wrong == []


def test_nothing_prints() -> None:
    """Text for people goes through `CommandContext`; the loop tells events."""
    assert [module for module, tree in trees().items() if "print" in calls(tree)] == []


def test_every_module_says_what_it_owns() -> None:
    assert [
        module for module, tree in trees().items() if module != "lopen" and not ast.get_docstring(tree)
    ] == []


def loaded_by(code: str) -> set[str]:
    """The top-level packages that a fresh interpreter has loaded after `code`."""
    listing = f"{code}\nimport sys\nprint(' '.join(sorted({{n.partition('.')[0] for n in sys.modules}})))"
    ran = subprocess.run(
        [sys.executable, "-c", listing], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    return set(ran.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_load_no_library_but_the_one_that_shows_them(argument: str) -> None:
    code = f"from lopen.__main__ import main\nassert main([{argument!r}]) == 0"
    assert loaded_by(code) & set(LIBRARIES) <= {"typer"}


def test_the_code_refers_to_no_document_outside_the_repository() -> None:
    assert figures.outside_references(ROOT) == []


def test_one_class_name_has_one_meaning() -> None:
    assert figures.defined_twice(figures.modules()) == {}
