"""The languages of a project: the outlines of its source files, and its toolchains as this machine has them.

An outline holds each definition's line and signature; a toolchain is the version of the language, and the test
runners and linters on PATH.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from lopen.core.trusted_programs import is_brought
from lopen.specification.documents import document_headings
from lopen.specification.sections import normalise_name
from lopen.verification.syntax import FUNCTIONS, GRAMMAR_OF, ParsedFile

if TYPE_CHECKING:
    from lopen.verification.syntax import Node


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A language: the files that tell of it, the command that tells its version, the tools looked for."""

    language: str
    files: frozenset[str]  # names, or suffixes with their dot
    version: tuple[str, ...]
    tools: tuple[str, ...]


def _toolchain(language: str, files: str, version: str, tools: str) -> Toolchain:
    return Toolchain(language, frozenset(files.split()), tuple(version.split()), tuple(tools.split()))


TOOLCHAINS = (
    _toolchain(
        "Python",
        ".py .pyi pyproject.toml setup.py requirements.txt",
        "python3 --version",
        "pytest ruff mypy flake8 tox uv",
    ),
    _toolchain(
        "JavaScript/TypeScript",
        ".js .jsx .mjs .cjs .ts .tsx .mts package.json",
        "node --version",
        "npm pnpm yarn tsc eslint vitest jest",
    ),
    _toolchain("Go", ".go go.mod", "go version", "gofmt golangci-lint staticcheck"),
    _toolchain("Rust", ".rs Cargo.toml", "rustc --version", "cargo rustfmt cargo-clippy"),
    _toolchain("Java", ".java pom.xml build.gradle build.gradle.kts", "java --version", "mvn gradle"),
    _toolchain("C/C++", ".c .h .cc .cpp .hpp CMakeLists.txt", "cc --version", "make cmake ctest clang-tidy"),
    _toolchain("Ruby", ".rb Gemfile", "ruby --version", "bundle rake rspec rubocop"),
)


def languages(files: Sequence[str], commands: Mapping[str, str | None], root: Path) -> tuple[str, ...]:
    """Return a line for each language of `files` and of the verify commands' programs, as they are now."""
    paths = [PurePosixPath(f) for f in files]
    seen = {p.name for p in paths} | {p.suffix for p in paths}
    programs = {
        PurePosixPath(command.split()[0]).name for command in commands.values() if command and command.split()
    }
    return tuple(
        _line(chain, root)
        for chain in TOOLCHAINS
        if chain.files & seen
        or programs & {chain.version[0], *chain.tools}
        or chain.language.lower() in programs
    )


def installed(root: Path) -> tuple[str, ...]:
    """Return a line for each language that this machine has, whether the project uses it or not."""
    return tuple(_line(chain, root) for chain in TOOLCHAINS if shutil.which(chain.version[0]))


def _line(chain: Toolchain, root: Path) -> str:
    there = [tool for tool in chain.tools if shutil.which(tool)]
    tools = f"on PATH: {', '.join(there)}" if there else f"none of {', '.join(chain.tools)} on PATH"
    return f"{chain.language}: {_version(chain.version, root)}; {tools}"


@cache
def _version(command: tuple[str, ...], root: Path) -> str:
    """Asked outside of the project and of no program in it: rustup, go and version managers start programs that a
    repository names.
    """
    path = shutil.which(command[0])
    if path is None:
        return "not installed here"
    if is_brought(path, root):
        return "the project's own"
    try:
        ran = subprocess.run(
            [path, *command[1:]],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=10,
            stdin=subprocess.DEVNULL,
            cwd="/",
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "version unknown"
    said = (ran.stdout or ran.stderr).strip().splitlines()
    return said[0][:80] if said else "version unknown"


LARGEST = 2_000_000  # characters; a larger file is hardly written by hand
LONGEST_SIGNATURE = 200
DEEPEST = 4  # containers inside each other
# Grammars name definitions by these ends, and some data too
DEFINITIONS = ("_definition", "_declaration", "_item", "_signature", "_module")
DATA = frozenset({"const_item", "static_item", "field_declaration", "property_signature"})
OTHER_DEFINITIONS = frozenset({"impl_item", "type_declaration", "module", "class"})
WRAPPERS = frozenset(
    {"decorated_definition", "export_statement", "ambient_declaration", "expression_statement"}
)


@dataclass(frozen=True, slots=True)
class Definition:
    """A class or function of a source file; `first` and `last` are its lines with decorators, `line` is its own first."""

    name: str
    line: int
    first: int
    last: int
    depth: int
    signature: str


def definitions(path: str, text: str) -> list[Definition]:
    """Return the definitions of a source file in their order; none where its language is not known or it is too long."""
    language = GRAMMAR_OF.get(PurePosixPath(path).suffix.lower().removeprefix("."))
    if language is None or len(text) > LARGEST:
        return []
    source = ParsedFile(text, language)
    return list(_inside(source, source.root, 0))


def outline(path: str, text: str, *, most: int | None = None) -> str | None:
    """Return the outline of a file, one line a definition or heading; None where its language is not known or it is
    too long. Where it would be longer than `most` characters, the outermost alone.
    """
    language = GRAMMAR_OF.get(PurePosixPath(path).suffix.lower().removeprefix("."))
    if headings := document_headings(path, text):
        heads = [(level, f"{line}: {'#' * level} {title}") for line, level, title in headings]
    elif language is None or len(text) > LARGEST:
        return None
    else:
        heads = [(d.depth, f"{d.line}: {'  ' * d.depth}{d.signature}") for d in definitions(path, text)]
    whole = "\n".join(head for _, head in heads)
    if most is None or len(whole) <= most:
        return whole
    outermost = min(depth for depth, _ in heads)
    return "\n".join(head for depth, head in heads if depth == outermost)


def named_part(path: str, text: str, name: str) -> tuple[int, int] | None:
    """Return the first and last line of a document's section, or of a definition such as `Cart.total`; None without one."""
    headings = document_headings(path, text)
    for at, (first, level, title) in enumerate(headings):
        if normalise_name(title) == normalise_name(name.rpartition(">")[2]):
            after = (line - 1 for line, other, _ in headings[at + 1 :] if other <= level)
            return first, next(after, len(text.splitlines()))
    owner, _, own = name.rpartition(".")
    known = definitions(path, text)
    found = [d for d in known if d.name == own]
    owners = [d for d in known if d.name == owner.rpartition(".")[2]]
    within = (d for d in found if any(o.first <= d.first and d.last <= o.last for o in owners))
    part = next(within, found[0] if found else None)
    return (part.first, part.last) if part else None


def _inside(source: ParsedFile, parent: Node, depth: int) -> Iterator[Definition]:
    for child in parent.named_children:
        yield from _definition(source, child, child, depth)


def _definition(source: ParsedFile, node: Node, whole: Node, depth: int) -> Iterator[Definition]:
    """Yield a definition and those in it; `whole` is it with its decorators or its `export`."""
    if node.type in WRAPPERS:
        for child in node.named_children:
            yield from _definition(source, child, node if whole is node else whole, depth)
        return
    body = _body(node)
    if _is_definition(node) or (depth == 0 and _held_function(node) is not None):
        first, last = whole.start_point[0] + 1, whole.end_point[0] + 1
        signature = _signature(source, node, whole, body)
        yield Definition(_name(source, node), source.line(node), first, last, depth, signature)
    if _is_definition(node) and node.type not in FUNCTIONS and body is not None and depth < DEEPEST:
        yield from _inside(source, body, depth + 1)
    elif node.type == "enum_body_declarations":  # the methods of a Java enum
        yield from _inside(source, node, depth)


def _is_definition(node: Node) -> bool:
    named = node.type.endswith(DEFINITIONS) and node.child_by_field_name("name") is not None
    return (named and node.type not in DATA) or node.type in OTHER_DEFINITIONS


def _name(source: ParsedFile, node: Node) -> str:
    """Return the name; of a variable that holds a function, a Go type and a Rust `impl` it stands further inside."""
    inner = next((c for c in node.named_children if c.child_by_field_name("name") is not None), node)
    named = node.child_by_field_name("name") or node.child_by_field_name("type")
    return source.of(named or inner.child_by_field_name("name"))


def _body(node: Node) -> Node | None:
    """The body of a definition, also of a function that a variable holds."""
    held = _held_function(node)
    if held is not None:
        return held.child_by_field_name("body")
    if node.type == "type_declaration":  # Go: the braces of a struct or an interface
        inner = next((c.child_by_field_name("type") for c in node.named_children), None)
        return next(iter(inner.named_children), None) if inner and inner.type == "struct_type" else None
    return node.child_by_field_name("body")


def _held_function(node: Node) -> Node | None:
    """Return the function that a variable of JavaScript holds."""
    variables = ("lexical_declaration", "variable_declaration")
    for declarator in node.named_children if node.type in variables else ():
        value = declarator.child_by_field_name("value")
        if value is not None and value.type in FUNCTIONS:
            return value
    return None


def _signature(source: ParsedFile, node: Node, whole: Node, body: Node | None) -> str:
    """A definition without its decorators and its body, on one line."""
    start = whole.start_byte if whole.type == "export_statement" else node.start_byte
    end = body.start_byte if body is not None else node.end_byte
    shown = " ".join(source.text[start:end].decode("utf-8", "replace").split())
    shown = shown.rstrip("{;: ").removesuffix("=>").rstrip()
    return shown if len(shown) <= LONGEST_SIGNATURE else shown[:LONGEST_SIGNATURE] + "…"
