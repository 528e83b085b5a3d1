"""Attempts to leave a project, or reach its protected files, through a file tool. Data; grows by rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Prepare = Callable[[Path, Path], None]
"""Gets the project root and a folder outside, and sets the trap."""


def _nothing(root: Path, outside: Path) -> None:
    """The path alone is the attempt."""


def _link(name: str, target: str) -> Prepare:
    def prepare(root: Path, outside: Path) -> None:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target.format(outside=outside, root=root))

    return prepare


def _links(*pairs: tuple[str, str]) -> Prepare:
    def prepare(root: Path, outside: Path) -> None:
        for name, target in pairs:
            _link(name, target)(root, outside)

    return prepare


LEAVING: dict[str, tuple[Prepare, str]] = {
    "parent": (_nothing, "../outside/secret.txt"),
    "parent only": (_nothing, ".."),
    "parent in the middle": (_nothing, "src/../../outside/secret.txt"),
    "parent that comes back": (_nothing, "src/../src/app.py"),
    "parent after dots": (_nothing, "././../outside/secret.txt"),
    "parent through a missing folder": (_nothing, "nope/../../outside/secret.txt"),
    "parent with doubled slashes": (_nothing, "src//..//..//outside/secret.txt"),
    "absolute": (_nothing, "/etc/passwd"),
    "absolute with two slashes": (_nothing, "//etc/passwd"),
    "absolute into proc": (_nothing, "/proc/self/environ"),
    "absolute of the root itself": (_nothing, "/"),
    "NUL at the end": (_nothing, "src/app.py\0"),
    "NUL before an extension": (_nothing, "../outside/secret.txt\0.py"),
    "lone surrogate": (_nothing, "src/\ud800.py"),
    "very long path": (_nothing, "a/" * 3_000 + "b"),
    "very long name": (_nothing, "x" * 300),
    "link to a file outside": (_link("out", "{outside}/secret.txt"), "out"),
    "link to a folder outside": (_link("out", "{outside}"), "out/secret.txt"),
    "relative link outside": (_link("out", "../outside"), "out/secret.txt"),
    "relative link to a file outside": (_link("out", "../outside/secret.txt"), "out"),
    "deep relative link outside": (_link("a/b/out", "../../../outside"), "a/b/out/secret.txt"),
    "link in a folder": (_link("src/out", "../../outside/secret.txt"), "src/out"),
    "link to the root of the machine": (_link("out", "/"), "out/etc/passwd"),
    "link into proc": (_link("out", "/proc/self/cwd"), "out/app.py"),
    "link to the root by its absolute name": (_link("out", "{root}"), "out/../outside/secret.txt"),
    "link to a parent": (_link("out", ".."), "out/outside/secret.txt"),
    "link to a link outside": (_links(("a", "b"), ("b", "../outside")), "a/secret.txt"),
    "link to a link to a parent": (_links(("a", "b/.."), ("b", "..")), "a/outside/secret.txt"),
    "link that goes down and up again": (_link("out", "src/../../outside"), "out/secret.txt"),
    "link that goes up too far at its end": (_link("out", "src/../.."), "out"),
    "link to itself": (_link("loop", "loop"), "loop"),
    "links in a circle": (_links(("a", "b/x"), ("b", "a")), "a/x"),
    "dangling link outside": (_link("out", "{outside}/new.txt"), "out"),
    "relative dangling link outside": (_link("out", "../outside/new.txt"), "out"),
}

PROTECTED_FOR_WRITING: tuple[str, ...] = (
    "specs/auth/SPECIFICATION.md",
    "specs/new/SPECIFICATION.md",
    "specs/SPECIFICATION.md",
    "specs/a/b/c/SPECIFICATION.md",
    "./specs//auth/./SPECIFICATION.md",
    "specs/auth/specification.md",
    "Specs/auth/SPECIFICATION.MD",
    "specs/auth/SPECIFICATION.md/x",
    "specs/auth/SPECIFICATION.md.",
    "specs/auth/SPECIFICATION.md ",
    "specs/auth/SPECIFICATION\u200d.md",
    "specs/auth/ＳＰＥＣＩＦＩＣＡＴＩＯＮ.md",
    ".lopen/state.db",
    ".lopen/config.toml",
    ".lopen/cache/home/x",
    ".LOPEN/state.db",
    ".lopen",
    "sub/.lopen/config.toml",
    ".lo\u200cpen/state.db",
    ".git/config",
    ".git/hooks/pre-commit",
    ".git",
    ".GIT/config",
    ".Git/hooks/post-checkout",
    "vendor/lib/.git/config",
    ".g\u200cit/config",
    "GIT~1/config",
    ".git./config",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".Claude/Settings.json",
    ".claude/settings",
    ".claude/settings.d/x.json",
    "sub/.claude/settings.json",
    "new\nline.txt",
    "bell\x07.txt",
    "escape\x1b[31m.txt",
)

PROTECTED_LINKS: dict[str, tuple[Prepare, str]] = {
    "link to the specification": (_link("s.md", "specs/auth/SPECIFICATION.md"), "s.md"),
    "link to the specification's folder": (_link("s", "specs/auth"), "s/SPECIFICATION.md"),
    "link to specs": (_link("s", "specs"), "s/auth/SPECIFICATION.md"),
    "link to specs, a new module": (_link("s", "specs"), "s/new/SPECIFICATION.md"),
    "link to .lopen": (_link("l", ".lopen"), "l/state.db"),
    "link to the database": (_link("db", ".lopen/state.db"), "db"),
    "link to .git": (_link("g", ".git"), "g/config"),
    "link to a hook not there yet": (_link("hook", ".git/hooks/post-merge"), "hook"),
    "link to settings": (_link("c.json", ".claude/settings.json"), "c.json"),
    "link to settings' folder": (_link("c", ".claude"), "c/settings.local.json"),
    "link to a link": (_links(("a", "b"), ("b", ".lopen/config.toml")), "a"),
    "link up and down again": (_link("src/x", "../.git/config"), "src/x"),
}

PROTECTED_FOR_READING: tuple[str, ...] = (
    ".lopen/state.db",
    ".lopen/config.toml",
    ".LOPEN/state.db",
    ".git/config",
    ".Git/config",
    "./.git/./config",
)
