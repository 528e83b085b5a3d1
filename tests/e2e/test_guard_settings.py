"""Settings of the guards that cannot be: refused at start, with file, key and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.project import Project

# What stands in the person's own file, the place and key named, and what is said to be allowed.
REFUSED = [
    ("[budget]\nwarning_threshold = 1.5\n", "budget.warning_threshold = 1.5", "above 0 and at most 1"),
    (
        "[budget]\nwarning_threshold = 0.95\nconfirmation_threshold = 0.9\n",
        "budget.warning_threshold from",
        "warning_threshold < confirmation_threshold <= pause_threshold",
    ),
    (
        "[budget]\npause_threshold = 0.5\nconfirmation_threshold = 0.9\n",
        "budget.pause_threshold from",
        "warning_threshold < confirmation_threshold <= pause_threshold",
    ),
    (
        "[budget]\ntoken_budget_per_module = -1\n",
        "budget.token_budget_per_module = -1",
        "whole number, at least 0",
    ),
    ("[workflow]\nfailure_threshold = 0\n", "workflow.failure_threshold = 0", "whole number, at least 1"),
    (
        '[guardrails]\ndisabled = ["churn"]\n',
        'guardrails.disabled = ["churn"]',
        '"circular_behaviour", "tool_discipline"',
    ),
    (
        "[circuit.rapid]\nthreshold = 5\n",
        "circuit.rapid.threshold",
        "nearest is circuit.rapid_fire.threshold",
    ),
]


@pytest.mark.parametrize(("text", "key", "allowed"), REFUSED, ids=[key for _, key, _ in REFUSED])
def test_a_setting_that_cannot_be_is_refused_at_start(
    text: str, key: str, allowed: str, tmp_path: Path
) -> None:
    own = tmp_path / "config" / "lopen" / "config.toml"
    own.parent.mkdir(parents=True)
    own.write_text(text, "utf-8")
    project = Project(tmp_path / "project", XDG_CONFIG_HOME=str(tmp_path / "config"))
    project.specify()

    ran = project.lopen("run", "calc")

    assert ran.code == 2
    assert f"{own}:2" in ran.err
    assert key in ran.err
    assert allowed in ran.err
    assert not (project.root / ".lopen" / "state.db").exists()
