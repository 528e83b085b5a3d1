"""The sentences that `lopen init` writes into a new specification, and finding those that nobody has replaced."""

from __future__ import annotations

from lopen.documents.diagnostic import Diagnostic

DESCRIPTION = "One sentence on what {module} is for."
OVERVIEW = "What {module} does, for whom, and what it leaves to others."
BEHAVIOUR = "What goes in, what comes out, and what happens at the edges: rules, limits, errors."
CRITERIA = (
    "An example of use gives the result this specification states",
    "A wrong input is refused with a message that names it",
)


def left_over(text: str, module: str) -> list[Diagnostic]:
    """A warning for every line that still says what `lopen init` wrote there."""
    written = {s.format(module=module) for s in (DESCRIPTION, OVERVIEW, BEHAVIOUR, *CRITERIA)}
    return [
        Diagnostic(number, f"still as lopen init wrote it: {said!r}; say what {module} is to do")
        for number, line in enumerate(text.splitlines(), 1)
        if (said := line.removeprefix("description:").removeprefix("- [ ]").strip()) in written
    ]
