from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lopen.hooks.config import KEYS, load, table
from lopen.limits.rules import rule_book
from lopen.settings.schema import Settings, Trust


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


def test_every_circuit_setting_is_known_here() -> None:
    circuit = Settings().circuit.model_dump()
    assert table(load("/nowhere", {"HOME": "/nowhere"}), "circuit") == circuit
    assert rule_book(circuit) == rule_book({})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".config" / "lopen").mkdir(parents=True)
    (tmp_path / "project" / ".lopen").mkdir(parents=True)
    return tmp_path


def loaded(home: Path, *, user: str = "", project: str = "", **environ: str) -> dict[str, Any]:
    (home / ".config" / "lopen" / "config.toml").write_text(user)
    (home / "project" / ".lopen" / "config.toml").write_text(project)
    return load(str(home / "project"), {"HOME": str(home), **environ})


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
    "text",
    [
        "budget = 5",
        "[budget]\nsession_tokens = 'many'",
        "[budget",
        "[budget]\nsession_tokens = -5",
        "\x00budget",
    ],
)
def test_what_is_written_wrongly_is_left_out(home: Path, text: str) -> None:
    assert loaded(home, user=text) == loaded(home)
    assert loaded(home, TOKEN_BUDGET_SESSION_DEFAULT="lots", TOKEN_BUDGET_ENABLED="perhaps") == loaded(home)
