"""Budgets as values: what was used of what is allowed, which thresholds were announced, who granted more.

Pure. The status follows from the numbers, so that no two writers can disagree about it:
active → warning (0.8) → paused (1.0) → active after an extension; exhausted where more is used than allowed.

See docs/reference/budgets-and-circuits.md.
"""

from __future__ import annotations

from lopen.core.errors import WrongUsage
from lopen.core.quick_stdlib import UTC, Value, datetime

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LARGEST_EXTENSION = 1_000_000
SMALLEST_ANSWER = 1_024  # an answer that may be shorter than this is not worth its input

# Crossings, in the order in which a growing budget meets them.
WARNING = "warning"
CONFIRMATION = "confirmation"
PAUSE = "pause"
ALERT_TYPES = {WARNING: "warning_threshold", CONFIRMATION: "confirmation", PAUSE: "budget_exhausted"}


class BudgetUsage(Value):
    """Tokens of one or more requests by kind, as billed (not weighted)."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0

    def billed(self, cache_read_weight: float) -> int:
        """Tokens as budgets count them: reads from the cache at their weight, all else whole."""
        whole = self.input_tokens + self.output_tokens + self.cache_write_tokens
        return whole + round(self.cache_read_tokens * cache_read_weight)


class Charge(Value):
    """An amount that is added to budgets at once. `cost_usd` is None where the model has no known price."""

    tokens: int
    usage: BudgetUsage = BudgetUsage()
    requests: int = 0
    cost_usd: float | None = None
    agent: str = ""
    model: str = ""
    estimated: bool = False  # of a request that was cut off

    @property
    def unpriced_tokens(self) -> int:
        """Tokens that no cost could be told for."""
        return self.tokens if self.cost_usd is None else 0


class BudgetSpec(Value):
    """A budget as the settings want it. 0 tokens or requests: unlimited."""

    budget_id: str
    budget_type: str  # module, session or task
    max_tokens: int
    max_requests: int = 0
    agent: str = ""
    task_description: str = ""
    alert_threshold: float = 0.8
    confirmation_threshold: float = 0.0  # 0: none is asked for
    pause_threshold: float = 1.0
    enforcement: str = "hard"  # or "warn": says it, never pauses


class BudgetState(Value):
    """A budget as it stands."""

    budget_id: str
    budget_type: str
    max_tokens: int
    tokens_used: int = 0
    reserved: int = 0  # tokens promised to requests that are under way
    alert_threshold: float = 0.8
    confirmation_threshold: float = 0.0
    pause_threshold: float = 1.0
    enforcement: str = "hard"
    started_at: datetime = EPOCH
    last_updated: datetime = EPOCH
    agent: str = ""
    task_description: str = ""
    max_requests: int = 0
    requests_used: int = 0
    requests_reserved: int = 0
    cost_usd: float = 0.0
    unpriced_tokens: int = 0
    announced: tuple[str, ...] = ()  # crossings already told
    confirmed: bool = False  # a person said to go on past the confirmation threshold
    extended: int = 0  # tokens granted by extensions, part of max_tokens
    estimated_tokens: int = 0  # of tokens_used, those of requests that were cut off
    eased_at: int = -1  # tokens_used at the last extension: active until the next record

    @property
    def token_utilization(self) -> float:
        """Tokens used of those allowed, 0.0 to 1.0 and beyond; 0.0 where unlimited."""
        return self.tokens_used / self.max_tokens if self.max_tokens > 0 else 0.0

    @property
    def request_utilization(self) -> float:
        """Requests made of those allowed; 0.0 where unlimited."""
        return self.requests_used / self.max_requests if self.max_requests > 0 else 0.0

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
        if self.enforcement == "hard":
            if self.utilization > max(1.0, self.pause_threshold):
                return "exhausted"
            if PAUSE in self.announced or self.utilization >= self.pause_threshold:
                return "paused"
        if self.utilization >= self.alert_threshold and self.tokens_used != self.eased_at:
            return "warning"
        return "active"

    @property
    def stopped(self) -> bool:
        """Nothing more may be spent until a person extends it."""
        return self.status in ("paused", "exhausted")


def opened(spec: BudgetSpec, now: datetime, earlier: BudgetState | None = None) -> BudgetState:
    """The budget of `spec`: new, or `earlier` with the present limits; extensions stay granted.

    What was announced stays announced where the limits are what they were: a budget that paused for want of
    room is still paused when the next process opens it.
    """
    limits = spec.fields()
    if earlier is None:
        return BudgetState(started_at=now, last_updated=now, **limits)
    if spec.max_tokens > 0:
        limits["max_tokens"] = spec.max_tokens + earlier.extended
    present = earlier.replace(**limits)
    return present if _limits(present) == _limits(earlier) else rearmed(present)


def _limits(state: BudgetState) -> tuple[object, ...]:
    return state.max_tokens, state.max_requests, thresholds(state), state.enforcement


def thresholds(state: BudgetState) -> tuple[tuple[str, float], ...]:
    """The crossings this budget knows, lowest first."""
    known = [(WARNING, state.alert_threshold), (PAUSE, state.pause_threshold)]
    if state.confirmation_threshold > 0:
        known.insert(1, (CONFIRMATION, state.confirmation_threshold))
    return tuple(known)


def due(state: BudgetState) -> tuple[str, ...]:
    """Crossings reached and not yet announced, lowest first."""
    return tuple(
        name
        for name, at in thresholds(state)
        if state.utilization >= at and state.utilization > 0 and name not in state.announced
    )


def record(state: BudgetState, charge: Charge, now: datetime) -> tuple[BudgetState, tuple[str, ...]]:
    """The budget after `charge`, and the thresholds it is the first to cross, also on a jump over several."""
    charged = state.replace(
        tokens_used=state.tokens_used + charge.tokens,
        requests_used=state.requests_used + charge.requests,
        cost_usd=state.cost_usd + (charge.cost_usd or 0.0),
        unpriced_tokens=state.unpriced_tokens + charge.unpriced_tokens,
        estimated_tokens=state.estimated_tokens + (charge.tokens if charge.estimated else 0),
        last_updated=now,
    )
    crossed = due(charged)
    return charged.replace(announced=(*state.announced, *crossed)), crossed


def rearmed(state: BudgetState) -> BudgetState:
    """Thresholds above the present utilisation may be announced again."""
    levels = dict(thresholds(state))
    kept = tuple(name for name in state.announced if state.utilization >= levels.get(name, 2.0))
    return state.replace(announced=kept, confirmed=state.confirmed and CONFIRMATION in kept)


def extended(state: BudgetState, tokens: int, reason: str, now: datetime) -> BudgetState:
    """The budget with `tokens` more; WrongUsage for absurd amounts, no reason, or nothing to extend."""
    if not 0 < tokens <= LARGEST_EXTENSION:
        raise WrongUsage(f"an extension is between 1 and {LARGEST_EXTENSION:,} tokens, not {tokens:,}")
    if not reason.strip():
        raise WrongUsage("an extension needs a reason", hint="say why with --reason TEXT")
    if state.max_tokens <= 0:
        raise WrongUsage(f"{state.budget_id} has no token limit to extend")
    grown = state.replace(
        max_tokens=state.max_tokens + tokens,
        extended=state.extended + tokens,
        last_updated=now,
        eased_at=state.tokens_used,
    )
    again = rearmed(grown)
    # Whoever grants more has looked at it: that is the confirmation too, until the threshold is met anew.
    return again.replace(confirmed=CONFIRMATION in again.announced)


def cleared(state: BudgetState, now: datetime) -> BudgetState:
    """The budget as if nothing had been used; limits, extensions and open reservations stay."""
    return state.replace(
        tokens_used=0,
        requests_used=0,
        cost_usd=0.0,
        unpriced_tokens=0,
        estimated_tokens=0,
        announced=(),
        confirmed=False,
        eased_at=-1,
        started_at=now,
        last_updated=now,
    )


def headroom(state: BudgetState) -> int | None:
    """Tokens that may still be promised; None where nothing limits them."""
    if state.enforcement != "hard" or state.max_tokens <= 0:
        return None
    return max(0, int(state.max_tokens * state.pause_threshold) - state.tokens_used - state.reserved)


def answer_room(state: BudgetState, input_tokens: int, max_tokens: int) -> int:
    """Return the longest answer, in tokens, that this budget lets a request have; 0 where it is not to be made at all.

    Shrunk to what is left, not below `SMALLEST_ANSWER` (or `max_tokens`, if that is less).
    """
    if state.stopped:
        return 0
    requests = state.requests_used + state.requests_reserved
    if state.enforcement == "hard" and 0 < state.max_requests * state.pause_threshold < requests + 1:
        return 0
    left = headroom(state)
    room = max_tokens if left is None else min(max_tokens, left - input_tokens)
    return room if room >= min(SMALLEST_ANSWER, max_tokens) else 0


def shortfall(state: BudgetState, need: int) -> int:
    """Tokens by which the budget is too small for a request of `need` more; 0 where there is room."""
    wanted = -int(-(state.tokens_used + state.reserved + need) // state.pause_threshold)  # rounded up
    return max(0, wanted - state.max_tokens)


def percent(fraction: float) -> str:
    """`82%`: whole, never rounded up to a threshold that was not reached."""
    return f"{int(fraction * 100 + 1e-9)}%"


def format_usage(used: int, allowed: int) -> str:
    """`82,000/100,000 (82%)`, or `82,000 (unlimited)`."""
    if allowed <= 0:
        return f"{used:,} (unlimited)"
    return f"{used:,}/{allowed:,} ({percent(used / allowed)})"
