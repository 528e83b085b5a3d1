"""Settings of the sandbox, hooks, notifications and recordings."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from lopen.settings.schema.parts import (
    LOWER,
    RAISE,
    USER_ONLY,
    Allowed,
    Positive,
    SettingsSection,
    path_in_project,
)


class SandboxSettings(SettingsSection):
    """The confinement of commands."""

    mode: Annotated[
        Literal["auto", "bwrap", "landlock", "none"],
        Field(
            description="Sandbox that commands run in; `auto` takes bubblewrap, else Landlock, else refuses to run commands."
        ),
        USER_ONLY,
    ] = "auto"
    network: Annotated[bool, Field(description="Let commands reach the network."), USER_ONLY] = False
    readable: Annotated[
        list[str],
        Field(
            description="Files and folders of the machine that commands may read besides the project, the system's programs and the tools on `PATH`."
        ),
        USER_ONLY,
    ] = Field(default_factory=list)
    package_indexes: Annotated[
        list[Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?$")]],
        Field(
            description="Hosts that `verify-setup` reaches, through a proxy, where bubblewrap has neither slirp4netns nor pasta; `host` or `host:port`."
        ),
        USER_ONLY,
    ] = Field(
        default_factory=lambda: [
            "pypi.org",
            "files.pythonhosted.org",
            "registry.npmjs.org",
            "registry.yarnpkg.com",
            "index.crates.io",
            "static.crates.io",
            "proxy.golang.org",
            "sum.golang.org",
            "repo.maven.apache.org",
            "plugins.gradle.org",
            "rubygems.org",
            "index.rubygems.org",
            "repo.packagist.org",
            "api.nuget.org",
        ]
    )
    max_processes: Annotated[
        Positive,
        Field(description="Processes and threads that one command may run at the same time."),
        USER_ONLY,
    ] = 512
    max_memory_mb: Annotated[
        Positive,
        Field(
            description="Memory that the processes of a command may use together, in MB; its temporary files may take as much again."
        ),
        USER_ONLY,
    ] = 4_096
    max_file_mb: Annotated[
        Positive, Field(description="Largest file that a command may write, in MB."), USER_ONLY
    ] = 1_024
    max_written_mb: Annotated[
        Positive,
        Field(description="What the processes of a command may write to disks together, in MB."),
        USER_ONLY,
    ] = 20_000
    verify_timeout_s: Annotated[
        float, Field(gt=0, le=7_200, description="Longest run of a verify command, in seconds."), LOWER
    ] = 600.0


class Verify(SettingsSection):
    """The clean room in which verify commands run."""

    carry: Annotated[
        list[Annotated[str, AfterValidator(path_in_project)]],
        Field(
            description="Files and folders of the project that git ignores and verify commands need all the same, such as `.env.test`: they are there read-only."
        ),
        USER_ONLY,
    ] = Field(default_factory=list)


class McpServer(SettingsSection):
    """One MCP server: a program whose tools the model is given."""

    command: Annotated[str, Field(min_length=1)]
    args: list[str] = Field(default_factory=list)
    env: list[str] = Field(
        default_factory=list
    )  # names of variables that it is given besides HOME, PATH and the like
    read_only: bool = True  # only tools that it declares read-only are offered
    timeout_s: Annotated[float, Field(gt=0, le=600)] = 60.0  # of one call


class Mcp(SettingsSection):
    """Servers of the Model Context Protocol."""

    servers: Annotated[
        dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$")], McpServer],
        Field(
            description="MCP servers whose tools the model is given; a table `[mcp.servers.NAME]` for each, see the page MCP."
        ),
        USER_ONLY,
        Allowed(
            "tables with `command`, and optionally `args`, `env` (names of variables), `read_only` and `timeout_s`"
        ),
    ] = Field(default_factory=dict)


class Hooks(SettingsSection):
    """The hooks for Claude Code."""

    external_commands: Annotated[
        list[str],
        Field(description="Programs that count as external API calls when Claude Code runs them."),
        USER_ONLY,
    ] = Field(default_factory=lambda: ["oracle.py", "swarm.py", "research.py"])
    check_stops: Annotated[
        bool,
        Field(
            description="Hold Claude Code back once where a turn ends by asking for permission, with a status report or with an unverified claim."
        ),
        RAISE,
    ] = False
    task_type: Annotated[
        Literal["", "planning", "implement", "review", "test", "deploy", "design"],
        Field(
            description="Type of the task of a Claude Code session, whose budget then holds, too; `/lopen-type TYPE` in a prompt changes it."
        ),
        USER_ONLY,
    ] = ""
    timeout_s: Annotated[
        float,
        Field(
            gt=0,
            le=30,
            description="Longest time a hook may take before it lets the call through, in seconds.",
        ),
        USER_ONLY,
    ] = 2.0


class Notify(SettingsSection):
    """Telling a person."""

    command: Annotated[
        str,
        Field(description="Shell command run when a run ends or needs a person; empty for none."),
        USER_ONLY,
    ] = ""


class RecordingSettings(SettingsSection):
    """Recording of model exchanges."""

    enabled: Annotated[
        bool,
        Field(description="Keep the exchanges with the model in `.lopen/recordings/`, without secrets."),
        USER_ONLY,
    ] = True


class Serve(SettingsSection):
    """The address of the server."""

    host: Annotated[str, Field(description="Address for the server to listen on."), USER_ONLY] = "127.0.0.1"
    port: Annotated[
        int,
        Field(ge=0, le=65_535, description="Port for the server to listen on; 0 takes a free one."),
        USER_ONLY,
    ] = 8_750
