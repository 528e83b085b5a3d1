"""The facts that guardrails look at before an iteration, gathered from the session, its budgets and its habits."""

from __future__ import annotations

from datetime import UTC, datetime

from lopen.guardrails.guard import BudgetFacts, ChurnFacts, GuardFacts, OpenCircuit, ScopeFacts
from lopen.guardrails.habits import HabitLimits, circles, undisciplined
from lopen.guardrails.resource_limits import level_of
from lopen.limits.texts import extension
from lopen.loop.context import SessionContext
from lopen.workflow.assess import scope_of
from lopen.workflow.session import Session
from lopen.workflow.steps import Step
from lopen.workflow.task_tree import Task, next_task


def guard_facts(context: SessionContext) -> GuardFacts:
    """Gather the facts that the guardrails check before an iteration."""
    session, settings = context.record.journal.session, context.settings
    task = _upcoming(session)
    subject = task.id if task else session.step.value
    scope = scope_of(session)
    calls = context.guards.meter.gate.calls()
    return GuardFacts(
        module=session.module,
        session=session.id,
        step=session.step,
        now=context.clock.now(),
        task_id=subject,
        task_name=task.name if task else session.step.value,
        budget=_budget(context),
        circuits=_circuits(context),
        churn=ChurnFacts(
            failures=task.failures if task else session.step_failures,
            reasons=task.reasons if task else session.step_reasons,
            confirmed_at=session.confirmed.get(subject, 0),
            threshold=settings.workflow.failure_threshold,
        ),
        scope=ScopeFacts(scope.completed, scope.original),
        circular=circles(calls, subject),
        discipline=undisciplined(calls, subject, HabitLimits.of(settings.tool_discipline)),
    )


def _upcoming(session: Session) -> Task | None:
    component = session.tree.component(session.selected or "")
    if session.step is not Step.ITERATE_THROUGH_TASKS or component is None:
        return None
    return next_task(component)


def _budget(context: SessionContext) -> BudgetFacts:
    settings, session = context.settings.budget, context.record.journal.session
    state = next((s for s in context.guards.meter.states() if s.budget_type == "module"), None)
    if state is None:
        return BudgetFacts(enabled=False)
    return BudgetFacts(
        tokens_used=state.tokens_used,
        tokens_max=state.max_tokens,
        requests_used=state.requests_used,
        requests_max=state.max_requests,
        warning=settings.warning_threshold,
        confirmation=settings.confirmation_threshold,
        pause=settings.pause_threshold,
        confirmed_level=level_of(settings.confirmation_threshold) if state.confirmed else 0,
        announced_level=session.budget_told,
        extension=extension(state),
        enforcement=settings.enforcement,
        enabled=settings.enabled,
    )


def _circuits(context: SessionContext) -> tuple[OpenCircuit, ...]:
    state = context.guards.meter.gate.circuit()
    if state is None or not state.tripped:
        return ()
    until = datetime.fromtimestamp(state.cooldown_until, UTC) if state.cooldown_until else None
    if state.tripped_at and context.clock.now().timestamp() < state.tripped_at:
        until = None  # the clock was set back: the breaker does not wait for it either
    return (OpenCircuit(state.circuit_id, state.rule, state.trip_reason, until, state.needs_ack),)
