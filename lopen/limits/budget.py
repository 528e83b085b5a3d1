"""Budgets as values: the use, the allowance, the announced thresholds and the granted extensions.

Pure. The status follows from the numbers, so that no two writers can disagree: active → warning (0.8) → paused (1.0)
→ active after an extension; exhausted where more is used than allowed.

See docs/reference/budgets-and-circuits.md.
"""

from __future__ import annotations

import math
import shlex
from dataclasses import astuple, dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal

from lopen.core.errors import WrongUsage
from lopen.core.money import dollars
from lopen.limits.records import EPOCH, Alert, new_id
from lopen.models.messages import Usage

if TYPE_CHECKING:
    from lopen.settings.schema import Budget

LARGEST_EXTENSION = 1_000_000
SMALLEST_ANSWER = 1_024  # an answer that may be shorter than this is not worth its input
TASK, GROUP = "task", "group"  # types of budgets; modules that are built together are a group

# Thresholds, in the order in which a growing budget crosses them
Crossing = Literal["", "warning", "confirmation", "pause"]
WARNING: Final = "warning"
CONFIRMATION: Final = "confirmation"
PAUSE: Final = "pause"
ALERT_TYPES = {WARNING: "warning_threshold", CONFIRMATION: "confirmation", PAUSE: "budget_exhausted"}


@dataclass(frozen=True, slots=True)
class Charge:
    """An amount that is added to budgets at once. `cost_usd` is None where the model has no known price."""

    tokens: int
    usage: Usage = field(default_factory=Usage)
    requests: int = 0
    cost_usd: float | None = None
    agent: str = ""
    model: str = ""
    estimated: bool = False  # of a request that was cut off

    @property
    def unpriced_tokens(self) -> int:
        """Tokens that no cost could be told for."""
        return self.tokens if self.cost_usd is None else 0


@dataclass(frozen=True, slots=True)
class BudgetSpec:
    """A budget as the settings want it. 0 tokens or requests: unlimited."""

    budget_id: str
    budget_type: str  # module, session, task or group
    max_tokens: int
    max_requests: int = 0
    agent: str = ""
    task_description: str = ""
    alert_threshold: float = 0.8
    confirmation_threshold: float = 0.0  # 0: none is asked for
    pause_threshold: float = 1.0
    enforcement: str = "hard"  # or "warn": announces, never pauses
    max_cost_usd: float = 0.0  # 0: unlimited; promised and counted together with the tokens

    @property
    def limits(self) -> tuple[object, ...]:
        """Everything but who works on what."""
        return astuple(replace(self, agent="", task_description=""))

    @property
    def thresholds(self) -> dict[str, float]:
        """The thresholds this budget knows, lowest first."""
        asks = {CONFIRMATION: self.confirmation_threshold} if self.confirmation_threshold > 0 else {}
        return {WARNING: self.alert_threshold, **asks, PAUSE: self.pause_threshold}


@dataclass(frozen=True, slots=True)
class BudgetState:
    """A budget as it stands."""

    spec: BudgetSpec
    started_at: datetime = EPOCH
    last_updated: datetime = EPOCH
    tokens_used: int = 0
    requests_used: int = 0
    reserved: int = 0  # tokens promised to requests that are under way
    requests_reserved: int = 0
    cost_usd: float = 0.0
    reserved_usd: float = 0.0
    unpriced_tokens: int = 0
    estimated_tokens: int = 0  # the part of tokens_used for requests that were cut off
    extended: int = 0  # tokens that extensions granted on top of the spec's
    announced: tuple[str, ...] = ()  # thresholds that were announced
    confirmed: bool = False  # a person said to go on past the confirmation threshold

    @property
    def budget_id(self) -> str:
        """`module:<name>`, `session:<id>`, `task:<id>` or `group:<id>`."""
        return self.spec.budget_id

    @property
    def budget_type(self) -> str:
        """module, session, task or group."""
        return self.spec.budget_type

    @property
    def max_tokens(self) -> int:
        """Tokens allowed, extensions included; 0 is unlimited."""
        return self.spec.max_tokens + self.extended if self.spec.max_tokens > 0 else 0

    @property
    def token_utilization(self) -> float:
        """Tokens used of those allowed, 0.0 to 1.0 and beyond; 0.0 where unlimited."""
        return self.tokens_used / self.max_tokens if self.max_tokens > 0 else 0.0

    @property
    def request_utilization(self) -> float:
        """Requests made of those allowed; 0.0 where unlimited."""
        return self.requests_used / self.spec.max_requests if self.spec.max_requests > 0 else 0.0

    @property
    def utilization(self) -> float:
        """The higher of both."""
        return max(self.token_utilization, self.request_utilization)

    @property
    def remaining(self) -> int | None:
        """Tokens left before the budget is used up, None where it is unlimited; reservations do not count."""
        return max(0, self.max_tokens - self.tokens_used) if self.max_tokens > 0 else None

    @property
    def status(self) -> str:
        """active, warning, paused or exhausted."""
        if self.spec.enforcement == "hard":
            if self.utilization > max(1.0, self.spec.pause_threshold):
                return "exhausted"
            if PAUSE in self.announced or self.utilization >= self.spec.pause_threshold:
                return "paused"
        return "warning" if self.utilization >= self.spec.alert_threshold else "active"

    @property
    def stopped(self) -> bool:
        """Nothing more may be spent until a person extends it."""
        return self.status in ("paused", "exhausted")

    @property
    def asks(self) -> bool:
        """Nothing more may be spent until a person confirms that it goes on."""
        at = self.spec.confirmation_threshold
        return self.spec.enforcement == "hard" and 0 < at <= self.utilization and not self.confirmed

    @property
    def refusal(self) -> Crossing:
        """The threshold that lets no request be made now: PAUSE, CONFIRMATION or ""."""
        return PAUSE if self.stopped else CONFIRMATION if self.asks else ""

    @property
    def due(self) -> tuple[str, ...]:
        """Thresholds reached and not yet announced, lowest first."""
        reached = (name for name, at in self.spec.thresholds.items() if 0 < self.utilization >= at)
        return tuple(name for name in reached if name not in self.announced)


def opened(spec: BudgetSpec, now: datetime, earlier: BudgetState | None = None) -> BudgetState:
    """The budget of `spec`: new, or `earlier` with the present limits; extensions stay granted.

    An announcement stays if the limits have not changed. So a budget that paused for want of room is still paused
    when the next process opens it. A group's limit on money is the highest that a process opened it with.
    """
    if earlier is None:
        return BudgetState(spec, started_at=now, last_updated=now)
    if spec.budget_type == GROUP:
        spec = replace(spec, max_cost_usd=max(spec.max_cost_usd, earlier.spec.max_cost_usd))
    present = replace(earlier, spec=spec)
    return present if spec.limits == earlier.spec.limits else rearmed(present)


def record(state: BudgetState, charge: Charge, now: datetime) -> tuple[BudgetState, tuple[str, ...]]:
    """The budget after `charge`, and the thresholds it is the first to cross, also on a jump over several."""
    charged = replace(
        state,
        tokens_used=state.tokens_used + charge.tokens,
        requests_used=state.requests_used + charge.requests,
        cost_usd=state.cost_usd + (charge.cost_usd or 0.0),
        unpriced_tokens=state.unpriced_tokens + charge.unpriced_tokens,
        estimated_tokens=state.estimated_tokens + (charge.tokens if charge.estimated else 0),
        last_updated=now,
    )
    crossed = charged.due
    return replace(charged, announced=(*state.announced, *crossed)), crossed


def rearmed(state: BudgetState) -> BudgetState:
    """Thresholds above the present utilisation may be announced again."""
    levels = state.spec.thresholds
    kept = tuple(name for name in state.announced if state.utilization >= levels.get(name, 2.0))
    return replace(state, announced=kept, confirmed=state.confirmed and CONFIRMATION in kept)


def extended(state: BudgetState, tokens: int, reason: str, now: datetime) -> BudgetState:
    """The budget with `tokens` more; WrongUsage for absurd amounts, no reason, or nothing to extend."""
    if not 0 < tokens <= LARGEST_EXTENSION:
        raise WrongUsage(f"an extension is between 1 and {LARGEST_EXTENSION:,} tokens, not {tokens:,}")
    if not reason.strip():
        raise WrongUsage("an extension needs a reason", hint="say why with --reason TEXT")
    if state.max_tokens <= 0:
        raise WrongUsage(f"{state.budget_id} has no token limit to extend")
    grown = rearmed(replace(state, extended=state.extended + tokens, last_updated=now))
    # An extension is the confirmation too, until the threshold is met anew: the person has looked at it.
    return replace(grown, confirmed=CONFIRMATION in (*grown.announced, *grown.due))


def cleared(state: BudgetState, now: datetime) -> BudgetState:
    """The budget as if nothing had been used; limits, extensions and open reservations stay."""
    return BudgetState(
        state.spec,
        started_at=now,
        last_updated=now,
        reserved=state.reserved,
        requests_reserved=state.requests_reserved,
        reserved_usd=state.reserved_usd,
        extended=state.extended,
    )


def answer_room(state: BudgetState, input_tokens: int, max_tokens: int) -> int:
    """Return the longest answer, in tokens, that this budget lets a request have; 0 where it is not to be made at all.

    Shrunk to the rest of the budget, not below `SMALLEST_ANSWER` (or `max_tokens`, if that is less).
    """
    if state.refusal:
        return 0
    if state.spec.enforcement != "hard":
        return max_tokens
    requests = state.requests_used + state.requests_reserved
    if 0 < state.spec.max_requests * state.spec.pause_threshold < requests + 1:
        return 0
    if state.max_tokens <= 0:
        return max_tokens
    left = int(state.max_tokens * state.spec.pause_threshold) - state.tokens_used - state.reserved
    room = min(max_tokens, left - input_tokens)
    return room if room >= min(SMALLEST_ANSWER, max_tokens) else 0


def extension(state: BudgetState, need: int = SMALLEST_ANSWER) -> int:
    """Tokens to grant so that work goes on: half as much again, at least enough for a request of `need` tokens.

    0 where no extension helps: requests are short, or more is lacking than one extension may grant.
    """
    wanted = -int(-(state.tokens_used + state.reserved + need) // state.spec.pause_threshold)  # rounded up
    lacking = max(0, wanted - state.max_tokens)
    requests = state.request_utilization > state.token_utilization
    if requests or state.max_tokens <= 0 or lacking > LARGEST_EXTENSION:
        return 0
    return min(LARGEST_EXTENSION, -(-max(state.max_tokens // 2, lacking) // 1_000) * 1_000)


def percent(fraction: float) -> str:
    """`82%`: whole, never rounded up to a threshold that was not reached."""
    return f"{int(fraction * 100 + 1e-9)}%"


def format_usage(used: int, allowed: int) -> str:
    """`82,000/100,000 (82%)`, or `82,000 (unlimited)`."""
    if allowed <= 0:
        return f"{used:,} (unlimited)"
    return f"{used:,}/{allowed:,} ({percent(used / allowed)})"


# which budgets work is charged to

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


def group_spec(budget: Budget, group: str) -> BudgetSpec:
    """The budget that modules built together share: one session's tokens, and the money of one `--max-cost`."""
    return BudgetSpec(
        f"{GROUP}:{group}",
        GROUP,
        budget.session_tokens if budget.enabled else 0,
        alert_threshold=budget.warning_threshold,
        pause_threshold=budget.pause_threshold,
        enforcement=budget.enforcement,
        max_cost_usd=budget.max_cost_usd,
    )


# in words

NEAR_LIMIT = (
    "At 80% wrap up the current work; at 100% execution pauses until a person extends the budget. "
    "Avoid identical tool calls: if something does not work twice, try another way or say what is missing."
)


def used_of(state: BudgetState) -> str:
    """`82,000 / 100,000`, in tokens, or in requests where those are the tighter limit."""
    if state.request_utilization > state.token_utilization:
        return f"{state.requests_used:,} / {state.spec.max_requests:,} requests"
    return f"{state.tokens_used:,} / {state.max_tokens:,}"


def extend_command(state: BudgetState, need: int = SMALLEST_ANSWER, *, short: bool = False) -> str:
    """The person's command that lets work go on after this budget paused it.

    `short`: without the budget's id, which the command finds where one budget alone is used up.
    """
    if money_short(state):
        more = math.ceil(round(100 * 2 * state.spec.max_cost_usd, 4)) / 100  # as much again
        return f"lopen resume --all --max-cost {more:g}"
    tokens, budget_id = extension(state, need), shlex.quote(state.budget_id)
    if not tokens:
        return f"lopen budget reset {budget_id}"
    return f"lopen budget extend{'' if short else f' {budget_id}'} --tokens {tokens}"


def money_short(state: BudgetState) -> bool:
    """True for a budget of whose money a larger share is used than of its tokens."""
    most = state.spec.max_cost_usd
    return most > 0 and state.cost_usd / most >= state.utilization


def standing_text(state: BudgetState, crossing: str) -> str:
    """A budget's answer to any further request, by the threshold that matters."""
    if crossing == PAUSE and money_short(state):
        spent, most = dollars(state.cost_usd), dollars(state.spec.max_cost_usd)
        return f"the modules built together have cost {spent} of the {most} they may, and no request fits the rest"
    share = f"{percent(state.utilization)} used ({used_of(state)})"
    if crossing == WARNING or state.spec.enforcement != "hard":
        return f"budget {state.budget_id}: {share}"
    if crossing == CONFIRMATION:
        return f"budget {state.budget_id} needs a person's confirmation to go on: {share}"
    promised = f", {state.reserved:,} more reserved for requests under way" if state.reserved else ""
    return f"budget {state.budget_id} has no room for another request: {share}{promised}"


def budget_alert(state: BudgetState, crossing: str, now: datetime, need: int = SMALLEST_ANSWER) -> Alert:
    """The alert for a threshold that was crossed just now; `need`: tokens of the request that found no room."""
    message = standing_text(state, crossing)
    if crossing == PAUSE and state.spec.enforcement == "hard":
        message += f"; to go on: {extend_command(state, need)}"
    return Alert(new_id(), state.budget_id, ALERT_TYPES[crossing], message, state.utilization, now)
