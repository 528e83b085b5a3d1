"""What only this sandbox promises."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lopen.sandbox import bubblewrap
from lopen.sandbox.bubblewrap import Bubblewrap, find_bwrap
from lopen.sandbox.command import Command, SandboxFailed
from lopen.sandbox.environment import SandboxOptions, command_home
from tests.needs import require_sandbox
from tests.sandbox.world import World

needs_bwrap = pytest.mark.usefixtures("working_bwrap")


@pytest.fixture
def working_bwrap() -> None:
    require_sandbox("bwrap")


@needs_bwrap
def test_an_older_bubblewrap_gets_no_option_that_it_does_not_know(tmp_path: Path) -> None:
    older = Bubblewrap(tmp_path, recent=False)
    assert {"--disable-userns", "--size"}.isdisjoint(older.options(Command("true", tmp_path), tmp_path))
    assert older.run(Command("echo done", tmp_path)).output == "done\n"


def test_repositories_in_other_folders_can_be_made(world: World) -> None:
    line = "git init -q t && cd t && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git log --oneline"
    assert world.run("bwrap", line).output.endswith(" x\n")


@needs_bwrap
def test_the_clone_s_git_folder_can_be_read_alone(tmp_path: Path) -> None:
    root, git_dir = tmp_path / "project", tmp_path / ".repository"
    subprocess.run(["git", "init", "-q", f"--separate-git-dir={git_dir}", root], check=True)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(root)]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "start"], check=True)
    sandbox = Bubblewrap(root)
    assert sandbox.run(Command("git log --format=%s", root)).output == "start\n"
    assert sandbox.run(Command(f"echo x > {git_dir}/HEAD; echo x > .git", root)).exit_code != 0
    assert (git_dir / "HEAD").read_text().startswith("ref:")
    assert (root / ".git").read_text().startswith("gitdir:")


@needs_bwrap
def test_a_repository_cannot_have_a_foreign_folder_shown(tmp_path: Path) -> None:
    foreign, project = tmp_path / "foreign", tmp_path / "project"
    subprocess.run(["git", "init", "-q", foreign], check=True)
    project.mkdir()
    (project / ".git").write_text(f"gitdir: {foreign}/.git\n")
    result = Bubblewrap(project).run(Command(f"ls {foreign}", project))
    assert "No such file" in result.output


@needs_bwrap
def test_a_home_as_project_hides_its_credentials(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/id_rsa").write_text("CANARY")
    (tmp_path / ".netrc").write_text("CANARY")
    sandbox = Bubblewrap(
        tmp_path, SandboxOptions(environ={"HOME": str(tmp_path), "PATH": os.environ["PATH"]})
    )
    result = sandbox.run(
        Command(f"cat {tmp_path}/.ssh/id_rsa {tmp_path}/.netrc; echo x > {tmp_path}/new", tmp_path)
    )
    assert "CANARY" not in result.output
    assert (tmp_path / "new").exists()


@needs_bwrap
def test_a_cache_folder_that_is_a_link_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "p/.lopen").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "p/.lopen/cache").symlink_to(tmp_path / "out")
    Bubblewrap(tmp_path / "p").run(Command("echo x > $HOME/x", tmp_path / "p"))
    assert os.listdir(tmp_path / "out") == []
    assert (tmp_path / "p/.lopen/cache/home/x").exists()


@needs_bwrap
@pytest.mark.parametrize("writable", [True, False])
def test_what_is_shown_stands_read_only_at_its_place(tmp_path: Path, writable: bool) -> None:
    root, kept, outside = (tmp_path / name for name in ("project", "kept", "outside"))
    for file in (
        root / "src.py",
        kept / "node_modules/dep.js",
        kept / "bin/tool",
        kept / "pnp.cjs",
        outside / "x",
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(file.name)
    home = command_home(root)
    shown = (
        (kept / "node_modules", root / "node_modules"),
        (kept / "pnp.cjs", root / "pnp.cjs"),
        (kept / "bin", home / ".local/bin"),
    )
    line = "cat node_modules/dep.js pnp.cjs ~/.local/bin/tool /tmp/home/.local/bin/tool; " + (
        "touch node_modules/x; echo >> pnp.cjs; rm -f ~/.local/bin/tool; mv node_modules x"
    )
    sandbox = Bubblewrap(root)

    seen = sandbox.run(Command(line, root, writable=writable, shown=shown)).output

    assert seen.startswith("dep.jspnp.cjstooltool")
    assert sorted(os.listdir(root)) == [".lopen", "src.py"]
    assert list(home.iterdir()) == []
    assert sorted(p.name for p in kept.rglob("*")) == ["bin", "dep.js", "node_modules", "pnp.cjs", "tool"]
    (home / ".local").symlink_to(outside)  # by an earlier command: nothing is made or shown there
    (root / "node_modules").symlink_to(outside)
    assert "dep.js" not in sandbox.run(Command("cat node_modules/*", root, shown=shown)).output
    assert os.listdir(outside) == ["x"]


@needs_bwrap
def test_lopens_folder_as_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p/.lopen").symlink_to(tmp_path)
    with pytest.raises(SandboxFailed, match="not a folder"):
        Bubblewrap(tmp_path / "p").run(Command("true", tmp_path / "p"))


def test_a_bwrap_that_the_project_brings_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "_SYSTEM_FOLDERS", ())
    fake = tmp_path / "bin/bwrap"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\n")
    fake.chmod(0o755)
    assert find_bwrap({"PATH": str(fake.parent)}, tmp_path / "other") == str(fake)
    with pytest.raises(SandboxFailed, match="not installed"):
        find_bwrap({"PATH": str(fake.parent)}, tmp_path)


@needs_bwrap
def test_a_sandbox_that_cannot_be_set_up_says_why(tmp_path: Path) -> None:
    with pytest.raises(SandboxFailed, match="bubblewrap cannot set up"):
        Bubblewrap(tmp_path).run(Command("true", tmp_path / "missing"))
    assert os.listdir(tmp_path) == [".lopen"]


def test_names_and_resolver_are_there_when_the_network_is_allowed(world: World) -> None:
    line = "cat /etc/resolv.conf > /dev/null && cat /proc/net/dev"
    shared = world.sandbox("bwrap").run(Command(line, world.root, network=True))
    own = world.sandbox("bwrap").run(Command("cat /proc/net/dev", world.root))
    assert shared.exit_code == 0
    assert [row.split(":")[0].strip() for row in own.output.splitlines()[2:]][:1] == ["lo"]
