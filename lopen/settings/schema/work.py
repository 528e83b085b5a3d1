"""Settings of the workflow, sessions, git and guardrails."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from lopen.settings.schema.parts import LOWER, RAISE, USER_ONLY, Count, Positive, SettingsSection


class Workflow(SettingsSection):
    """The course of a run."""

    unattended: Annotated[
        bool, Field(description="Answer the questions of the model by their own default."), USER_ONLY
    ] = False
    max_iterations: Annotated[
        Positive,
        Field(description="Iterations that a session may use before a person has to grant more."),
        LOWER,
    ] = 100
    failure_threshold: Annotated[
        Positive,
        Field(description="Failures of one task in a row after which a person has to confirm."),
        LOWER,
    ] = 3
    max_nudges: Annotated[
        Count,
        Field(description="Times that a model which stops too early is told to go on, in one iteration."),
        LOWER,
    ] = 2
    max_clarifications: Annotated[
        Count,
        Field(
            description="Questions of the model that reach a person in one session; further ones get their default."
        ),
        LOWER,
    ] = 1
    templates: Annotated[
        str,
        Field(
            description="Folder of prompt templates that replace the bundled ones; empty for the bundled ones."
        ),
        USER_ONLY,
    ] = ""


class SessionSettings(SettingsSection):
    """Continuing and keeping sessions."""

    auto_resume: Annotated[
        bool, Field(description="Let `lopen run` continue the unfinished session of the module.")
    ] = True
    retention: Annotated[
        Positive,
        Field(le=10_000, description="Finished sessions kept before older ones are archived."),
        LOWER,
    ] = 10
    retention_days: Annotated[
        Positive, Field(le=3_650, description="Age at which a finished session is archived, in days."), LOWER
    ] = 7


class Git(SettingsSection):
    """The use of git."""

    enabled: Annotated[
        bool,
        Field(
            description="Use the project's git repository; without it a private history of snapshots takes its place."
        ),
        RAISE,
    ] = True
    auto_commit: Annotated[
        bool,
        Field(description="Commit each completed task; without it the work stays in the work tree."),
        RAISE,
    ] = True
    convention: Annotated[Literal["conventional", "plain"], Field(description="Form of commit subjects.")] = (
        "conventional"
    )
    branch_prefix: Annotated[
        str,
        Field(
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]{0,60}$",
            description="First part of the name of a module's branch.",
        ),
        USER_ONLY,
    ] = "lopen/"
    isolation: Annotated[
        Literal["branch", "worktree"],
        Field(
            description="Build in your checkout (`branch`) or in a linked work tree beside it (`worktree`)."
        ),
    ] = "branch"
    sign: Annotated[bool, Field(description="Sign commits with your GPG key."), USER_ONLY] = False

    @model_validator(mode="after")
    def _work_comes_back(self) -> Git:
        if self.isolation == "worktree" and not (self.enabled and self.auto_commit):
            raise ValueError(
                'isolation = "worktree" needs enabled and auto_commit: only commits bring the work back '
                "from a work tree beside your checkout"
            )
        return self


class ToolDiscipline(SettingsSection):
    """Limits of wasteful tool use."""

    max_file_reads: Annotated[
        Positive, Field(description="Reads of one unchanged file after which the model is corrected."), LOWER
    ] = 3
    max_command_retries: Annotated[
        Positive, Field(description="Failures of one command after which the model is corrected."), LOWER
    ] = 3
    max_files_edited: Annotated[
        Positive,
        Field(
            description="Different files edited since the last test run after which the model is corrected."
        ),
        LOWER,
    ] = 5


class Guardrails(SettingsSection):
    """Guardrails that only advise."""

    disabled: Annotated[
        list[Literal["circular_behaviour", "tool_discipline"]],
        Field(description="Advisory guardrails that are switched off."),
        USER_ONLY,
    ] = Field(default_factory=list)
