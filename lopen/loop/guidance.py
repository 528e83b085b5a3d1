"""A person's guidance while a session runs: kept as decisions, and told to the model with its next turn."""

from __future__ import annotations

from lopen.core.events import GuidanceGiven
from lopen.models.prompts.parts import decision
from lopen.store.journal import Journal, take_requests
from lopen.workflow import changes
from lopen.workflow.session import GUIDANCE


def take_guidance(journal: Journal) -> list[str]:
    """Record what a person told the session meanwhile; return it as the model is told it.

    In the enclosing transaction: what is told is taken, kept and stored in the conversation at once or not at all.
    """
    texts = [request.body["text"] for request in take_requests(journal.database, journal.session.id, "tell")]
    for text in texts:
        journal.save(changes.add_guidance(journal.session, text), GuidanceGiven(text))
    return [decision(GUIDANCE, text) for text in texts]
