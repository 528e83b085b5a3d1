"""Research notes: `specs/<module>/RESEARCH-<topic>.md`, versioned with the code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

EXCERPT_CHARS = 240


@dataclass(frozen=True, slots=True)
class Topic:
    """A research note: its name in the file name, and the start of its summary."""

    name: str
    path: Path
    excerpt: str


def slug(topic: str) -> str:
    """Return the topic for a file name: at most 60 lower-case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", topic.casefold()).strip("-")[:60].strip("-") or "topic"


def render_note(topic: str, summary: str, findings: str, sources: Sequence[str], relevance: str) -> str:
    """Return the note as markdown."""
    parts = [f"# {topic}", "", summary.strip(), "", "## Findings", "", findings.strip(), ""]
    if relevance:
        parts += ["## Relevance", "", relevance.strip(), ""]
    if sources:
        parts += ["## Sources", "", *(f"- {' '.join(s.split())}" for s in sources), ""]
    return "\n".join(parts)


def topics(folder: Path) -> tuple[Topic, ...]:
    """Return every note in a module's folder, sorted by name."""
    found = []
    for path in sorted(folder.glob("RESEARCH-*.md")):
        if path.is_symlink() or not path.is_file():
            continue
        text = path.read_text("utf-8", errors="replace")[:4_000]
        body = [line for line in text.splitlines()[1:] if line.strip()]
        excerpt = (body[0] if body else "")[:EXCERPT_CHARS]
        found.append(Topic(path.stem.removeprefix("RESEARCH-"), path, excerpt))
    return tuple(found)


def read_topic(folder: Path, topic: str) -> str | None:
    """Return the note on a topic, found by its name or by the slug of its name; None if there is none."""
    wanted = {topic, slug(topic)}
    found = next((t for t in topics(folder) if t.name in wanted), None)
    return found.path.read_text("utf-8", errors="replace") if found else None
