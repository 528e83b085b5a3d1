"""The parts of a prompt and how they are cut to size: lower priority first, and every cut is said. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

CHARS_PER_TOKEN = 4  # a rough measure; the endpoint's own count settles budgets
LONGEST_TITLE = 200
NEWLINE = "\n"
NOTE_CHARS = 100  # about what saying a cut costs
SMALLEST_PIECE = 200  # characters; less of a part is not worth its title
_UNSEEN = r"[\s\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]*"  # a tag may hide behind it
_FENCE = re.compile(rf"<(?={_UNSEEN}/?{_UNSEEN}data\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Part:
    """A titled piece of text. `priority` 0 is never cut; the highest number goes first.

    `data` marks text that comes from the repository or a person: it is fenced, and said to be data.
    `rest` says how the model gets what was cut.
    """

    title: str
    text: str
    priority: int = 0
    data: bool = False
    rest: str = ""

    def rendered(self) -> str:
        """As it stands in the prompt."""
        if not self.data:
            return f"## {self.title}\n{_fenced(self.text)}"
        label = _label(self.title)
        return f"## {label}\n<data>\n{_fenced(self.text.removesuffix(NEWLINE))}\n</data>"


def _fenced(text: str) -> str:
    """`text` in which no tag can open or close a fence: only the angle bracket of such a tag is replaced."""
    return _FENCE.sub("&lt;", text)


def bullet(text: str) -> str:
    """`text` as one entry of a list: what follows its first line is indented, so that no line of it is a title."""
    return "- " + indented(text)


def indented(text: str) -> str:
    """`text` with every line but the first one moved in."""
    return "\n  ".join(text.splitlines())


def _label(title: str) -> str:
    """A title on one line: headings and paths are data too."""
    return _fenced(" ".join(title.split())[:LONGEST_TITLE])


def fit(parts: Sequence[Part], limit: int) -> tuple[Part, ...]:
    """`parts` in their order with at most about `limit` characters of text, and one part more that names what is gone.

    The least important parts shrink first. One with too little room left is emptied: a title and a fence around
    nothing would only cost.
    """
    kept = list(parts)
    excess = sum(len(p.text) for p in kept) - limit
    for index in sorted(range(len(kept)), key=lambda i: (-kept[i].priority, -i)):
        if excess <= 0:
            break
        part = kept[index]
        if part.priority == 0 or not part.text:
            continue
        room = len(part.text) - excess - NOTE_CHARS
        kept[index] = cut(part, room) if room >= SMALLEST_PIECE else replace(part, text="")
        excess -= len(part.text) - len(kept[index].text)
    return (*kept, _gone([p for p, k in zip(parts, kept, strict=True) if p.text and not k.text]))


def _gone(parts: Sequence[Part]) -> Part:
    named = (f"{_label(p.title)} ({_fenced(p.rest)})" if p.rest else _label(p.title) for p in parts)
    return Part("Left out for size", "; ".join(named))


def cut(part: Part, room: int) -> Part:
    """`part` with its text cut to `room` characters at a line's end, and the cut said."""
    if len(part.text) <= room:
        return part
    head = part.text[:room]
    head = head[: head.rfind("\n") + 1] if "\n" in head else head
    said = f"[cut here: {len(part.text) - len(head)} of {len(part.text)} characters left out"
    said += f"; {part.rest}]" if part.rest else "]"
    return replace(part, text=head + said)


def joined(parts: Sequence[Part]) -> str:
    """The parts that hold text, one after another."""
    return "\n\n".join(p.rendered() for p in parts if p.text.strip())
