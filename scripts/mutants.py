"""Measure how many small faults the tests find: change one place of the code, run the tests, count who notices.

    python -m scripts.mutants lopen/guardrails --tests tests/guardrails --count 30 --result /tmp/before.json
    python -m scripts.mutants lopen/guardrails --tests tests/guardrails --like /tmp/before.json --result /tmp/after.json

`--count` chooses mutants by a hash, the same for the same code. `--like` takes the mutants of an earlier result and
finds them again by the shape of their function, so that renamed and moved functions keep their mutants. An
interrupted run goes on where it stopped: mutants that have an outcome in the result are not run again.
"""

from __future__ import annotations

import argparse
import ast
import copy
import hashlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from itertools import count
from pathlib import Path
from types import FrameType

import pytest

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("lopen", "tests", "scripts", "bench", "docs", "specs", "pyproject.toml", "README.md", "AGENTS.md")
PRELOADED = ("hypothesis", "markdown_it", "pydantic", "redis", "transitions", "xxhash", "yaml")
MODIFIED = count(1_000_000_000)  # a new modification time for each change of a file
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
Function = ast.FunctionDef | ast.AsyncFunctionDef  # Python 3.11 has no `type` statement


Place = tuple[Path, str, str]  # the file, its mutated source, the qualified name of the function


@dataclass(frozen=True)
class Mutant:
    """One change of one function; `shape`, `kind` and `place` find it again after a rename."""

    name: str  # module and qualified name of the function
    shape: str  # hash of the function without names and texts
    statement: str  # hash of the changed statement without names and texts
    kind: str
    place: int  # position among the changes of this kind in the function
    text: str  # the changed statement, to read


def changes(function: Function) -> Iterator[tuple[str, ast.stmt]]:
    """Change the function in place, one change at a time, and yield the kind and the changed statement."""
    for statement in (s for s in ast.walk(function) if isinstance(s, ast.stmt) and s is not function):
        for node in _own_nodes(statement):
            for kind in _change(node):
                yield kind, statement
    for block in _blocks(function):
        for i, statement in enumerate(block):
            if isinstance(statement, ast.Assign | ast.AugAssign | ast.Raise) or _is_call(statement):
                block[i] = ast.copy_location(ast.Pass(), statement)
                yield "delete", statement
                block[i] = statement


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the statement and its expressions, without the statements that it contains."""
    yield statement
    waiting = [n for n in ast.iter_child_nodes(statement) if not isinstance(n, ast.stmt)]
    if isinstance(statement, ast.AnnAssign):
        waiting = [statement.value] if statement.value else []
    elif isinstance(statement, Function):
        waiting = []
    while waiting:
        node = waiting.pop(0)
        yield node
        waiting += [n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.stmt)]


def _blocks(function: Function) -> Iterator[list[ast.stmt]]:
    """Yield every list of statements in the function."""
    for node in ast.walk(function):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                yield block


def _is_call(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)


def _change(node: ast.AST) -> Iterator[str]:
    """Apply each change that fits the node, yield its kind, and undo it."""
    if isinstance(node, ast.Compare):
        for i, old in enumerate(node.ops):
            node.ops[i] = COMPARISONS[type(old)]()
            yield "comparison"
            node.ops[i] = old
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPERATORS:
        operator = node.op
        node.op = OPERATORS[type(operator)]()
        yield "operator"
        node.op = operator
    elif isinstance(node, ast.BoolOp):
        boolean = node.op
        node.op = ast.Or() if isinstance(boolean, ast.And) else ast.And()
        yield "and/or"
        node.op = boolean
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        value = node.value
        node.value = not value if isinstance(value, bool) else value + 1
        yield "constant"
        node.value = value
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        test = node.test
        node.test = ast.UnaryOp(ast.Not(), test)
        yield "condition"
        node.test = test
    elif isinstance(node, ast.Return) and node.value and ast.unparse(node.value) != "None":
        returned = node.value
        node.value = ast.Constant(None)
        yield "return"
        node.value = returned
    elif isinstance(node, ast.comprehension):
        for i, condition in enumerate(node.ifs):
            node.ifs[i] = ast.UnaryOp(ast.Not(), condition)
            yield "filter"
            node.ifs[i] = condition


def shape(node: ast.AST) -> str:
    """Return a hash of the code without its names, texts and annotations."""
    node = copy.deepcopy(node)
    for part in ast.walk(node):
        body = getattr(part, "body", None)
        if isinstance(part, Function) and ast.get_docstring(part) is not None:
            body.pop(0)  # type: ignore[union-attr]
        for field in ("annotation", "returns"):
            if hasattr(part, field):
                setattr(part, field, None)
        for field in ("id", "attr", "arg", "name", "module"):
            if isinstance(getattr(part, field, None), str):
                setattr(part, field, "_")
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            part.value = "_"
    return hashlib.sha256(ast.dump(node).encode()).hexdigest()[:16]


def functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Yield every function and method of the module with its qualified name."""
    for node in tree.body:
        if isinstance(node, Function):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{f.name}", f) for f in node.body if isinstance(f, Function))


def mutants(root: Path, modules: Iterable[Path]) -> Iterator[tuple[Mutant, Place]]:
    """Yield each mutant of the modules with its place today."""
    for path in modules:
        tree = ast.parse(path.read_text("utf-8"))
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        for name, function in functions(tree):
            function_shape, seen = shape(function), Counter[str]()
            before = {
                id(s): (shape(s), ast.unparse(s)) for s in ast.walk(function) if isinstance(s, ast.stmt)
            }
            for kind, statement in changes(function):
                statement_shape, text = before[id(statement)]
                place = seen[kind]
                seen[kind] += 1
                mutant = Mutant(f"{module}.{name}", function_shape, statement_shape, kind, place, text[:200])
                yield mutant, (path, ast.unparse(tree), name)


def rank(mutant: Mutant) -> str:
    """Return the hash that orders the mutants: the first ones in this order are chosen."""
    return hashlib.sha256(f"{mutant.name} {mutant.kind} {mutant.place}".encode()).hexdigest()


def find_again(wanted: Sequence[Mutant], present: Sequence[tuple[Mutant, Place]]) -> dict[Mutant, Place]:
    """Map the mutants of an earlier run to today's code; those whose code is gone are absent."""
    exact: dict[object, list[tuple[Mutant, Place]]] = {}
    close: dict[object, list[tuple[Mutant, Place]]] = {}
    for entry in present:
        mutant = entry[0]
        exact.setdefault((mutant.shape, mutant.kind, mutant.place), []).append(entry)
        close.setdefault((mutant.statement, mutant.kind), []).append(entry)
    found: dict[Mutant, Place] = {}
    for mutant in wanted:
        entries = exact.get((mutant.shape, mutant.kind, mutant.place)) or close.get(
            (mutant.statement, mutant.kind)
        )
        if entries:
            best = max(entries, key=lambda e: (_alike(e[0].name, mutant.name), e[0].text == mutant.text))
            found[mutant] = best[1]
    return found


def _alike(name: str, other: str) -> int:
    """Count the parts that two qualified names share."""
    return len(set(name.split(".")) & set(other.split(".")))


class Reached:
    """A pytest plugin that notes which functions of lopen each test file reaches."""

    def __init__(self, tree: Path) -> None:
        self._prefix = f"{tree}/lopen/"
        self.files: dict[str, set[str]] = {}  # test file -> "path:qualified name"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        reached = self.files.setdefault(item.nodeid.partition("::")[0], set())

        def note(frame: FrameType, event: str, argument: object) -> None:
            code = frame.f_code
            if event == "call" and code.co_filename.startswith(self._prefix):
                name = code.co_qualname.partition(".<locals>")[0]
                reached.add(f"lopen/{code.co_filename.removeprefix(self._prefix)}:{name}")

        sys.setprofile(note)
        try:
            return (yield)
        finally:
            sys.setprofile(None)


def run_tests(tree: Path, tests: Sequence[str], limit: float, map_file: Path | None = None) -> int | None:
    """Run the tests in a fork and return the exit code, or None after `limit` seconds."""
    child = os.fork()
    if child == 0:
        os.setsid()
        os.chdir(tree)
        os.environ["PYTHONPATH"] = str(tree)
        sys.path[:0] = [str(tree)]
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silent, stream)
        reached = Reached(tree)
        code = pytest.main(
            ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests],
            plugins=[reached] if map_file else [],
        )
        if map_file:
            map_file.write_text(json.dumps({f: sorted(names) for f, names in reached.files.items()}), "utf-8")
        os._exit(int(code))
    end = time.monotonic() + limit
    while time.monotonic() < end:
        finished, status = os.waitpid(child, os.WNOHANG)
        if finished:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def outcome(tree: Path, path: Path, source: str, tests: Sequence[str], limit: float) -> str:
    """Run the tests with the mutated source in the copied tree and return killed, survived or timeout."""
    file = tree / path.relative_to(ROOT)
    original = file.read_text("utf-8")
    file.write_text(source, "utf-8")
    os.utime(
        file, (next(MODIFIED), 0)
    )  # Python would reuse the bytecode of a file with the same size and second
    try:
        return {0: "survived", None: "timeout"}.get(run_tests(tree, tests, limit), "killed")
    finally:
        file.write_text(original, "utf-8")
        os.utime(file, (next(MODIFIED), 0))


def reaching(reached: Mapping[str, Sequence[str]], path: Path, name: str) -> list[str]:
    """Return the test files that reach the function, those that reach the least first; all if none is known."""
    function = f"{path.relative_to(ROOT)}:{name}"
    files = [file for file, names in reached.items() if function in names]
    return sorted(files or reached, key=lambda file: len(reached[file]))


def copied_tree(folder: Path) -> Path:
    """Copy what the tests need to the folder and return it."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy(source, folder / name)
    return folder


def main() -> int:
    """Run the chosen mutants and write their outcomes after each one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("modules", nargs="+", type=Path, help="files and folders to mutate")
    parser.add_argument("--tests", nargs="+", required=True)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--like", type=Path, help="take the mutants of this result")
    parser.add_argument("--result", type=Path, required=True)
    parser.add_argument("--limit", type=float, default=120, help="seconds that one run of the tests may take")
    options = parser.parse_args()

    files = [f for m in options.modules for f in ([m] if m.is_file() else sorted(m.rglob("*.py")))]
    present = list(mutants(ROOT, [f.resolve() for f in files]))
    if options.like:
        wanted = [Mutant(**entry["mutant"]) for entry in json.loads(options.like.read_text("utf-8"))]
        chosen = find_again(wanted, present)
    else:
        ordered = sorted(present, key=lambda entry: rank(entry[0]))[: options.count]
        wanted = [entry[0] for entry in ordered]
        chosen = {entry[0]: entry[1] for entry in ordered}
    outcomes: dict[Mutant, str] = {}
    if options.result.exists():
        earlier = json.loads(options.result.read_text("utf-8"))
        outcomes = {Mutant(**entry["mutant"]): entry["outcome"] for entry in earlier}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree, map_file = copied_tree(Path(folder).resolve()), Path(folder).resolve() / "reached.json"
        for name in PRELOADED:
            import_module(name)
        started = time.monotonic()
        if run_tests(tree, options.tests, options.limit * 10, map_file) != 0:
            print("the tests fail on the code as it is", file=sys.stderr)
            return 2
        reached = json.loads(map_file.read_text("utf-8"))
        print(f"{len(wanted)} mutants, the tests take {time.monotonic() - started:.0f} s", flush=True)
        for mutant in wanted:
            if mutant in outcomes:
                continue
            outcomes[mutant] = "gone"
            if mutant in chosen:
                path, source, name = chosen[mutant]
                outcomes[mutant] = outcome(tree, path, source, reaching(reached, path, name), options.limit)
            results = [{"mutant": asdict(m), "outcome": outcomes[m]} for m in wanted if m in outcomes]
            options.result.write_text(json.dumps(results, indent=1), "utf-8")
            print(f"{outcomes[mutant]:9}{mutant.kind:11}{mutant.name}: {mutant.text[:60]!r}", flush=True)
    print(dict(Counter(outcomes[m] for m in wanted)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
