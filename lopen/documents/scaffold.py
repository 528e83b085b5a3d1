"""The sentences that `lopen init` writes into a new specification, for the author to replace."""

from __future__ import annotations

DESCRIPTION = "One sentence on what {module} is for."
OVERVIEW = "What {module} does, for whom, and what it leaves to others."
BEHAVIOUR = "What goes in, what comes out, and what happens at the edges: rules, limits, errors."
CRITERIA = (
    "An example of use gives the result this specification states",
    "A wrong input is refused with a message that names it",
)
