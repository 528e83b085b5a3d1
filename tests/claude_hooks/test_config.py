from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from lopen.claude_hooks.config import BOUNDS, ENVIRONMENT, INFINITE, KEYS, _fits, load, table
from lopen.limits.rules import rule_book
from lopen.settings.schema import Budget, Settings, Trust
from lopen.settings.sources import SHORT_VARIABLES


def test_defaults_and_trust_are_the_schemas() -> None:
    whole = Settings()
    for key, (default, trust) in KEYS.items():
        value: Any = whole
        rule = "anyone"
        for name in key.split("."):
            [rule] = [m.rule for m in type(value).model_fields[name].metadata if isinstance(m, Trust)] or [
                "anyone"
            ]
            value = getattr(value, name)
        assert (value, rule) == (default, trust), key


def test_variables_without_a_prefix_are_the_settings_own() -> None:
    assert ENVIRONMENT == SHORT_VARIABLES


def test_every_circuit_setting_is_known_here() -> None:
    circuit = Settings().circuit.model_dump()
    assert table(load("/nowhere", {"HOME": "/nowhere"})[0], "circuit") == circuit
    assert rule_book(circuit) == rule_book({})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".config" / "lopen").mkdir(parents=True)
    (tmp_path / "project" / ".lopen").mkdir(parents=True)
    return tmp_path


def loaded(home: Path, *, user: str = "", project: str = "", **environ: str) -> dict[str, Any]:
    (home / ".config" / "lopen" / "config.toml").write_text(user)
    (home / "project" / ".lopen" / "config.toml").write_text(project)
    values, faults = load(str(home / "project"), {"HOME": str(home), **environ})
    assert faults == ()
    return values


def faults_of(home: Path, *, user: str = "", project: str = "", **environ: str) -> tuple[str, ...]:
    """The faults; what is wrong changes nothing."""
    unchanged = loaded(home)
    (home / ".config" / "lopen" / "config.toml").write_text(user)
    (home / "project" / ".lopen" / "config.toml").write_text(project)
    values, faults = load(str(home / "project"), {"HOME": str(home), **environ})
    assert values == unchanged
    return faults


def test_the_environment_counts_before_the_files(home: Path) -> None:
    values = loaded(
        home,
        user="[budget]\nsession_tokens = 900_000\ncache_read_weight = 0.5\n",
        project="[budget]\nsession_tokens = 300_000\n",
        TOKEN_BUDGET_SESSION_DEFAULT="700000",
        LOPEN_CIRCUIT__DUPLICATE_CALL__THRESHOLD="9",
        CIRCUIT_BREAKER_COOLDOWN="30",
        LOPEN_HOOKS__EXTERNAL_COMMANDS='["a.py", "b.py"]',
    )
    assert values["budget.session_tokens"] == 700_000
    assert values["budget.cache_read_weight"] == 0.5
    assert values["circuit.duplicate_call.threshold"] == 9
    assert values["circuit.rapid_fire.cooldown_base"] == 30
    assert values["hooks.external_commands"] == ["a.py", "b.py"]


def test_a_repository_may_tighten_but_not_loosen(home: Path) -> None:
    project = """
[budget]
session_tokens = 0
warning_threshold = 0.5
enabled = false
store = "redis://evil"
[circuit]
enabled = false
[circuit.duplicate_call]
threshold = 50
[circuit.tool_failure]
threshold = 2
enabled = false
cooldown_base = 0
[resources]
max_concurrent_agents = 2
[hooks]
timeout_s = 0.001
"""
    values = loaded(home, project=project)
    plain = loaded(home)
    changed = {key for key in values if values[key] != plain[key]}
    assert changed == {
        "budget.warning_threshold",
        "circuit.tool_failure.threshold",
        "resources.max_concurrent_agents",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[budget]\nsession_tokens = 'many'", "budget.session_tokens is not a whole number from 0"),
        ("[budget]\nsession_tokens = -5", "budget.session_tokens is not a whole number from 0"),
        ("[budget]\nsession_tokens = 5.5", "budget.session_tokens is not a whole number from 0"),
        ("[budget]\nenabled = 1", "budget.enabled is not true or false"),
        ("[budget]\nstore = 'mysql://x:secret@y'", "budget.store is not one of its texts"),
        (
            "[budget]\nwarning_threshold = nan",
            "budget.warning_threshold is not a number above 0 and at most 1",
        ),
        ("[budget", "config.toml is not valid TOML (end of document): nothing in it holds"),
        ("\x00budget", "config.toml is not valid TOML (line 1, column 1): nothing in it holds"),
        ("[budget]\nwarning_threshold = 0.95\npause_threshold = 0.9", "must hold; the defaults do"),
        ("[hooks]\nexternal_commands = [1]", "hooks.external_commands is not a list of texts"),
        ("[memory]\nevidence_max = 0", "memory.evidence_max is not a whole number from 1 and at most 100000"),
    ],
)
def test_what_is_written_wrongly_is_left_out_and_said(home: Path, text: str, said: str) -> None:
    [fault] = faults_of(home, user=text)
    assert said in fault
    assert "secret" not in fault


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TOKEN_BUDGET_SESSION_DEFAULT", "lots"),
        ("TOKEN_BUDGET_ENABLED", "perhaps"),
        ("TOKEN_BUDGET_PAUSE_THRESHOLD", "0"),
        ("TOKEN_BUDGET_TTL", "0"),
        ("LOPEN_HOOKS__TIMEOUT_S", "0"),
        ("LOPEN_HOOKS__TIMEOUT_S", "31"),
        ("LOPEN_RESOURCES__MAX_CONCURRENT_AGENTS", "0"),
        ("CIRCUIT_BREAKER_MAX_ITERATIONS", "0"),
        ("CIRCUIT_BREAKER_RAPID_FIRE_WINDOW", "0"),
    ],
)
def test_a_wrong_variable_is_left_out_and_said(home: Path, name: str, value: str) -> None:
    [fault] = faults_of(home, **{name: value})
    assert fault.startswith(f"{name} is not ")


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({"TOKEN_BUDGET_PAUSE_THRESHOLD": "0.75"}, (0.6, 0.675, 0.75)),
        ({"TOKEN_BUDGET_ALERT_THRESHOLD": "0.95"}, (0.95, 0.975, 1.0)),
        ({"TOKEN_BUDGET_ALERT_THRESHOLD": "0.5"}, (0.5, 0.9, 1.0)),
    ],
)
def test_thresholds_that_are_not_set_follow_the_others(
    home: Path, variables: dict[str, str], wanted: tuple[float, float, float]
) -> None:
    values = loaded(home, **variables)
    names = ("warning_threshold", "confirmation_threshold", "pause_threshold")
    assert tuple(values[f"budget.{name}"] for name in names) == wanted
    given = {"ALERT": "warning", "PAUSE": "pause"}
    [(variable, value)] = variables.items()
    schema = Budget.model_validate({f"{given[variable.split('_')[2]]}_threshold": float(value)})
    assert tuple(getattr(schema, name) for name in names) == wanted


def test_what_is_none_of_the_hooks_settings_is_no_fault(home: Path) -> None:
    others = {"LOPEN_MODEL__MAX_TOKENS": "x", "LOPEN_A__B": "c"}
    assert faults_of(home, user="budget = 5\n[model]\nmax_tokens = 'x'\n", **others) == ()


def test_a_file_that_cannot_be_read_is_said(home: Path) -> None:
    (home / "project" / ".lopen" / "config.toml").mkdir()
    [fault] = load(str(home / "project"), {"HOME": str(home)})[1]
    assert "config.toml cannot be read (IsADirectoryError)" in fault


def test_the_bounds_are_the_schemas() -> None:
    assert {
        key for key, (default, _) in KEYS.items() if default is None or type(default) in (int, float)
    } == set(BOUNDS)
    for key, (low, itself, high) in BOUNDS.items():
        for value in (low - 1, low, low + 0.5, low + 1, high, high + 1):
            if abs(value) == INFINITE:
                continue
            whole = int(value) if float(value).is_integer() else value
            assert _fits(key, whole) is accepted(key, whole), (key, whole, itself)
    for key in (key for key, (default, _) in KEYS.items() if isinstance(default, str)):
        for text in (
            "sqlite",
            "redis://",
            "redis://x",
            "rediss://x",
            "unix://x",
            "mysql://",
            "hard",
            "warn",
            "soft",
            "",
            "a b",
        ):
            assert _fits(key, text) is accepted(key, text), (key, text)


def accepted(key: str, value: object) -> bool:
    """Whether the schema takes it, the order of the thresholds aside."""
    names = key.split(".")
    model: Any = Settings()
    for name in names[:-1]:
        model = getattr(model, name)
    try:
        type(model)(**{names[-1]: value})
    except ValidationError as error:
        return all("must hold" in str(e["msg"]) for e in error.errors())
    return True
