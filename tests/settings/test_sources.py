"""The sources in order, what they refuse, and where each value came from."""

from __future__ import annotations

from pathlib import Path

import pytest

from lopen.core.errors import WrongUsage
from lopen.settings.keys import keys, value_of
from lopen.settings.schema import Settings
from lopen.settings.sources import SHORT_VARIABLES, Loaded, Source, load, set_value, user_file
from lopen.settings.trust import Unconfirmed, confirm
from tests.settings.conftest import Write


def _load(project: Path, environ: dict[str, str] | None = None, **flags: object) -> Loaded:
    return load(project, flags={k.replace("__", "."): v for k, v in flags.items()}, environ=environ or {})


def test_without_any_source_the_defaults_hold(project: Path) -> None:
    loaded = _load(project)
    assert loaded.settings == Settings()
    assert set(loaded.provenance) == set(keys())
    assert set(loaded.provenance.values()) == {Source("default")}


def test_each_source_gives_way_to_the_one_before_it(project: Path, own: Write, theirs: Write) -> None:
    key = "budget.session_tokens"
    mine = own("[budget]\nsession_tokens = 400\n")
    assert _load(project).provenance[key] == Source("user", f"{mine}:2")
    their = theirs("[budget]\n# tight\nsession_tokens = 300\n")
    assert _load(project).provenance[key] == Source("project", f"{their}:3")
    environ = {"LOPEN_BUDGET__SESSION_TOKENS": "200"}
    assert _load(project, environ).provenance[key] == Source("environment", "LOPEN_BUDGET__SESSION_TOKENS")
    loaded = _load(project, environ, budget__session_tokens=100)
    assert loaded.provenance[key].name == "flag"
    assert loaded.settings.budget.session_tokens == 100


@pytest.mark.parametrize(("variable", "key"), SHORT_VARIABLES.items())
def test_the_seed_s_variables_set_their_keys(project: Path, variable: str, key: str) -> None:
    text = "false" if keys()[key].default is True else "7"
    text = {"budget.warning_threshold": "0.5", "budget.pause_threshold": "0.95"}.get(key, text)
    loaded = _load(project, {variable: text})
    assert loaded.provenance[key] == Source("environment", variable)
    assert value_of(loaded.settings, key) in (False, 0.5, 0.95, 7)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("models.fallback", "[]", []),
        ("models.fallback", ' ["a"]\n', ["a"]),
        ("models.building", "5", "5"),
        ("budget.session_tokens", " 5 ", 5),
        ("resources.cost_block_usd", "1e3", 1000.0),
        ("budget.enabled", "off", False),
        ("budget.enabled", "YES", True),
    ],
)
def test_a_variable_s_text_is_read_as_the_key_s_type(
    project: Path, key: str, text: str, value: object
) -> None:
    found = value_of(_load(project, {keys()[key].variable: text}).settings, key)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"LOPEN_MODELS__FALLBACK": "a,b"}, ["LOPEN_MODELS__FALLBACK", '"a,b"', "a list"]),
        ({"LOPEN_BUDGT__ENABLED": "no"}, ["LOPEN_BUDGT__ENABLED", "budgt.enabled", "budget.enabled"]),
        ({"LOPEN_SANDBOX__MODE": "jail"}, ["LOPEN_SANDBOX__MODE", '"jail"', '"bwrap", "landlock"']),
        ({"TOKEN_BUDGET_TTL": "0"}, ["TOKEN_BUDGET_TTL", "budget.ttl_s", "at least 1"]),
    ],
)
def test_a_wrong_variable_is_named_with_what_is_allowed(
    project: Path, environ: dict[str, str], said: list[str]
) -> None:
    with pytest.raises(WrongUsage) as caught:
        _load(project, environ)
    assert all(word in caught.value.message for word in said)
    assert "\n" not in caught.value.message


def test_every_wrong_line_of_a_file_is_named(project: Path, own: Write) -> None:
    path = own("[budget]\nsesion_tokens = 5\ntask_tokens = '5'\n[modle]\nbase_url = 'x'\n")
    with pytest.raises(WrongUsage) as caught:
        _load(project)
    unknown, wrong, section = sorted(caught.value.message.splitlines(), key=lambda line: line.split(": ")[0])
    assert unknown.startswith(f"{path}:2: budget.sesion_tokens = 5: there is no such setting")
    assert "budget.session_tokens (a whole number, at least 0)" in unknown
    assert (
        wrong == f'{path}:3: budget.task_tokens = "5" is not allowed; allowed is a whole number, at least 0'
    )
    assert section.startswith(f"{path}:5: modle.base_url")
    assert "the nearest is model.base_url" in section


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[budget]\nwarning_threshold = 1.5\n", "above 0 and at most 1"),
        ("[budget]\nmax_cost_usd = 1e308\n", "at most 1,000,000,000"),
        (
            "[budget]\npause_threshold = 0.5\nconfirmation_threshold = 0.9\n",
            "warning_threshold < confirmation_threshold <= pause_threshold",
        ),
        ("[circuit.rapid]\nthreshold = 5\n", "nearest is circuit.rapid_fire.threshold"),
    ],
)
def test_a_value_that_cannot_be_is_named_with_its_place(
    project: Path, own: Write, text: str, said: str
) -> None:
    path = own(text)
    with pytest.raises(WrongUsage) as caught:
        _load(project)
    assert f"{path}:2" in caught.value.message
    assert said in caught.value.message


def test_a_key_under_a_wrong_name_is_never_printed(project: Path, own: Write) -> None:
    own("[model]\napi_key = 'sk-ant-very-secret'\n")
    with pytest.raises(WrongUsage) as caught:
        _load(project)
    assert "very-secret" not in caught.value.message


@pytest.mark.parametrize(("text", "place"), [("a = \n", "1:5"), ("[budget]\nx = [1,\n", "3:1")])
def test_broken_toml_names_line_and_column(project: Path, theirs: Write, text: str, place: str) -> None:
    path = theirs(text)
    with pytest.raises(WrongUsage, match="invalid TOML") as caught:
        _load(project)
    assert caught.value.message.startswith(f"{path}:{place}: ")


def test_values_that_do_not_fit_together_name_their_places(project: Path) -> None:
    with pytest.raises(WrongUsage, match="warning_threshold") as caught:
        _load(
            project, {"TOKEN_BUDGET_ALERT_THRESHOLD": "0.95", "LOPEN_BUDGET__CONFIRMATION_THRESHOLD": "0.9"}
        )
    assert "budget.warning_threshold from TOKEN_BUDGET_ALERT_THRESHOLD" in caught.value.message


@pytest.mark.parametrize("name", ["model.base_url", "sandbox.mode", "workflow.unattended", "verify.carry"])
def test_a_project_may_not_set_what_is_the_person_s(project: Path, theirs: Write, name: str) -> None:
    section, leaf = name.rsplit(".", 1)
    value = keys()[name].default
    sample = {bool: "true", str: f'"{value}"', list: "[]", dict: "{}"}.get(type(value), str(value or 1))
    path = theirs(f"[{section}]\n{leaf} = {sample}\n")
    with pytest.raises(WrongUsage) as caught:
        _load(project)
    assert caught.value.message.startswith(f"{path}:2: {name} = ")
    assert "may not be set by a project" in caught.value.message


@pytest.mark.parametrize("name", ["budget.session_tokens", "budget.pause_threshold", "circuit.enabled"])
def test_a_project_may_not_loosen_a_limit_or_switch_a_protection_off(
    project: Path, own: Write, theirs: Write, name: str
) -> None:
    key = keys()[name]
    section, leaf = name.rsplit(".", 1)
    if key.trust.rule == "raise":
        own(f"[{section}]\n{leaf} = true\n")
        looser = "false"
    elif key.default in (0, 1):
        own(f"[{section}]\n{leaf} = 0.4\n" if key.default else f"[{section}]\n{leaf} = 4\n")
        looser = "0.5" if key.default else "5"
    else:
        looser = str(key.default * 1.1 if isinstance(key.default, float) else key.default + 1)
    theirs(f"[{section}]\n{leaf} = {looser}\n")
    with pytest.raises(WrongUsage, match=rf"{name} = .*(looser than your own|switches off)"):
        _load(project)


def test_a_project_may_tighten_limits(project: Path, theirs: Write) -> None:
    theirs(
        "[budget]\nsession_tokens = 1000\ntoken_budget_per_module = 5\n[circuit.rapid_fire]\nthreshold = 20\n"
        "[sandbox]\nverify_timeout_s = 60\n"
    )
    settings = _load(project).settings
    assert settings.budget.session_tokens == 1000
    assert settings.budget.token_budget_per_module == 5


def test_an_alias_stands_for_the_model_of_that_kind(project: Path, own: Write) -> None:
    own('[models]\nbuilding = "opus"\nfallback = ["haiku", "other"]\n[oracle]\nmodel = "sonnet"\n')
    settings = _load(project).settings
    assert (settings.models.building, settings.oracle.model) == ("claude-opus-5-5", "claude-sonnet-5-5")
    assert settings.models.fallback == ["claude-haiku-5-5", "other"]


def test_models_of_a_repository_wait_for_the_person_s_word(project: Path, theirs: Write) -> None:
    theirs('[models]\nbuilding = "huge"\nfallback = ["other"]\nplanning = "claude-sonnet-5-5"\n')
    asked = _load(project).unconfirmed
    assert asked == (Unconfirmed("models.building", "huge"), Unconfirmed("models.fallback", ["other"]))
    for one in asked:
        confirm(project, one.key, one.value)
    assert _load(project).unconfirmed == ()


def test_a_file_that_only_a_person_can_change_is_refused_by_name(project: Path, own: Write) -> None:
    own("budget = 5\n")
    with pytest.raises(WrongUsage, match=r"cannot set budget\.enabled"):
        set_value("user", project, "budget.enabled", "true")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sandbox.mode", "none"),
        ("budget.session_tokens", "0"),
        ("budget.enabled", "maybe"),
        ("git.enabeld", "true"),
    ],
)
def test_setting_what_would_be_refused_writes_nothing(project: Path, key: str, value: str) -> None:
    with pytest.raises(WrongUsage):
        set_value("project", project, key, value)
    assert not (project / ".lopen" / "config.toml").exists()


def test_values_that_would_not_fit_together_are_not_written(project: Path) -> None:
    set_value("user", project, "budget.confirmation_threshold", "0.9")
    before = user_file().read_text("utf-8")
    with pytest.raises(WrongUsage, match="confirmation_threshold"):
        set_value("user", project, "budget.warning_threshold", "0.95")
    assert user_file().read_text("utf-8") == before
