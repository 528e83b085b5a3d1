"""Which budgets a piece of work is charged to, and how large they are: from the settings.

See docs/reference/budgets-and-circuits.md.
"""

from __future__ import annotations

from dataclasses import replace

from lopen.limits.budget import TASK, BudgetSpec
from lopen.settings.schema import Budget

DEFAULT_TASK_TYPE = "implement"


def task_tokens(budget: Budget, task_type: str) -> int:
    """The limit of a task of that type: its own where one is set or known, else `budget.task_tokens`.

    `implement` is the default type: it follows `task_tokens` unless it is set by itself.
    """
    by_type = budget.by_task_type
    own = getattr(by_type, task_type, None) if task_type in type(by_type).model_fields else None
    follows_default = task_type == DEFAULT_TASK_TYPE and task_type not in by_type.model_fields_set
    return budget.task_tokens if own is None or follows_default else int(own)


def specs_for(
    budget: Budget,
    *,
    session_id: str,
    module: str,
    task: str | None = None,
    task_type: str = DEFAULT_TASK_TYPE,
    agent: str = "",
    task_description: str = "",
) -> tuple[BudgetSpec, ...]:
    """Module, session and task budgets; all without a limit where budgets are switched off."""
    on = 1 if budget.enabled else 0

    def spec(budget_id: str, budget_type: str, tokens: int) -> BudgetSpec:
        return BudgetSpec(
            budget_id,
            budget_type,
            on * tokens,
            agent=agent,
            alert_threshold=budget.warning_threshold,
            pause_threshold=budget.pause_threshold,
            enforcement=budget.enforcement,
        )

    of_module = replace(
        spec(f"module:{module}", "module", budget.token_budget_per_module),
        max_requests=on * budget.premium_request_budget,
        confirmation_threshold=budget.confirmation_threshold,
    )
    of_session = spec(f"session:{session_id}", "session", budget.session_tokens)
    if task is None:
        return of_module, of_session
    of_task = spec(f"task:{task}", TASK, task_tokens(budget, task_type))
    return of_module, of_session, replace(of_task, task_description=task_description)
