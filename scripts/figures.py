"""Measure the size and shape of the code: modules, importers, cycles, context objects, names defined twice.

Run `python -m scripts.figures`; `tests/test_architecture.py` holds the limits.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE_DOCUMENTS = re.compile(r"\bcontract( §|, §|'s §|\))|§ ?\d+|\bseeds? 0\d\d|\bDECISIONS\b|\bHOUSE\.md")


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Map each module of lopen to its file."""
    return {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted((root / "lopen").rglob("*.py"))
    }


def imported(tree: ast.AST, known: Mapping[str, object]) -> Iterator[str]:
    """Yield every module that the code imports, wherever the import stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else node.module


def import_graph(files: Mapping[str, Path]) -> dict[str, set[str]]:
    """Map each module to the modules of lopen that it imports."""
    return {
        name: {m for m in imported(ast.parse(path.read_text("utf-8")), files) if m in files and m != name}
        for name, path in files.items()
    }


def room(module: str) -> str:
    """Return the folder directly below `lopen/` that holds the module."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def room_graph(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Map each room to the rooms that it imports."""
    rooms: dict[str, set[str]] = defaultdict(set)
    for module, targets in graph.items():
        rooms[room(module)] |= {room(t) for t in targets} - {room(module)}
    return dict(rooms)


def cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components of more than one node (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(graph.get(node, ())):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            component: list[str] = []
            while component[-1:] != [node]:
                component.append(stack.pop())
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def importers(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Map each module to the modules of lopen that import it."""
    found: dict[str, set[str]] = {name: set() for name in graph}
    for module, targets in graph.items():
        for target in targets:
            found[target].add(module)
    return found


def single_importers(graph: Mapping[str, set[str]]) -> dict[str, str]:
    """Map each module that exactly one other module imports to that module."""
    return {
        name: next(iter(by)) for name, by in importers(graph).items() if len(by) == 1 and name.count(".") > 1
    }


def classes(files: Mapping[str, Path]) -> Iterator[tuple[str, str, int]]:
    """Yield module, name and number of annotated fields of every class."""
    for module, path in files.items():
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                yield module, node.name, sum(isinstance(n, ast.AnnAssign) for n in node.body)


def defined_twice(files: Mapping[str, Path]) -> dict[str, list[str]]:
    """Map each public class name that more than one module defines to those modules."""
    by_name: dict[str, list[str]] = defaultdict(list)
    for module, name, _ in classes(files):
        if not name.startswith("_"):
            by_name[name].append(module)
    return {name: where for name, where in by_name.items() if len(where) > 1}


def outside_references(root: Path = ROOT) -> list[str]:
    """Return the lines, as `path:line`, that refer to documents which are not in the repository."""
    found = []
    for folder in ("lopen", "tests", "bench", "scripts", "docs", "specs"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".py", ".md", ".sql") or path == Path(__file__).resolve():
                continue
            for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
                if OUTSIDE_DOCUMENTS.search(line):
                    found.append(f"{path.relative_to(root)}:{number}")
    return found


def main() -> None:
    """Print the figures; with `--list`, also what stands behind them."""
    root = Path(sys.argv[-1]).resolve() if Path(sys.argv[-1]).is_dir() and len(sys.argv) > 1 else ROOT
    files = modules(root)
    graph = import_graph(files)
    lengths = {name: path.read_text("utf-8").count("\n") for name, path in files.items()}
    single = single_importers(graph)
    twice = defined_twice(files)
    widest = sorted(((n, f"{m}.{c}") for m, c, n in classes(files)), reverse=True)[:12]
    loose = [p.name for p in (root / "lopen").glob("*.py")]
    tests = sum(p.read_text("utf-8").count("\n") for p in (root / "tests").rglob("*.py"))
    outside = outside_references(root)
    rows = {
        "loose modules at the top": len(loose),
        "lines in lopen/": sum(lengths.values()),
        "modules": len(files),
        "median lines a module": int(median(lengths.values())),
        "modules with a single importer": len(single),
        "file cycles": len(cycles(graph)),
        "room cycles": len(cycles(room_graph(graph))),
        "fields of the widest class": widest[0][0],
        "public class names defined twice": len(twice),
        "references to documents not in the repository": len(outside),
        "lines in tests/": tests,
    }
    for what, count in rows.items():
        print(f"{what:48} {count:>7,}")
    if "--list" in sys.argv:
        print("\ncycles", *cycles(graph), *cycles(room_graph(graph)), sep="\n  ")
        print("\nwidest", *widest, sep="\n  ")
        print("\ndefined twice", *(f"{n}: {w}" for n, w in twice.items()), sep="\n  ")
        print("\nsingle importers")
        for name, by in sorted(single.items()):
            print(f"  {name} ({lengths[name]}) <- {by} ({lengths[by]})")
        print(
            "\nlines a room",
            dict(
                Counter(dict.fromkeys(room_graph(graph), 0))
                + Counter(
                    {r: sum(n for m, n in lengths.items() if room(m) == r) for r in {room(m) for m in files}}
                )
            ),
        )
        print("\noutside", *outside, sep="\n  ")


if __name__ == "__main__":
    main()
