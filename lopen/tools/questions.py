"""An open question, which is stored: the terminal, `lopen answer` in any shell or the dashboard may answer it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from lopen.core.events import QuestionAsked
from lopen.store.journal import Journal, requested, take_requests
from lopen.workflow import changes
from lopen.workflow.pauses import Question


class Person(Protocol):
    """The person at the terminal, if there is one."""

    def ask(self, question: Question, settled: Callable[[], bool]) -> str | None:
        """Return the answer; None where nobody can answer now, or where it is `settled` elsewhere."""
        ...


class Nobody:
    """The person of a run at which nobody is present."""

    def ask(self, question: Question, settled: Callable[[], bool]) -> str | None:
        return None


def answered(journal: Journal, person: Person, question: Question) -> str | None:
    """Record and return the answer to the stored question that comes first, None where it has to wait for one."""
    database, session = journal.database, journal.session.id

    def given() -> str | None:
        found = [r.body["text"] for r in requested(database, session, "answer")]
        return found[-1] if found else None

    answer = given() or person.ask(question, lambda: bool(requested(database, session, "answer", "pause")))
    answer = answer or given()
    if answer is None:
        return None
    told = QuestionAsked(question.text, question.options, question.default, answer)
    with journal.transaction():
        take_requests(database, session, "answer")
        journal.save(changes.answer_question(journal.session, question.text, answer), told)
    return answer
