"""Build the wheel and the source distribution, and check what is in them: `python -m scripts.check_package`."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from lopen import __version__

ROOT = Path(__file__).resolve().parent.parent


def build(folder: Path) -> tuple[Path, Path]:
    """Build the source distribution, and the wheel from it, into the folder; return the wheel and the source.

    The build starts from a copy: setuptools would also take what an earlier build in the same folder had listed.
    """
    copy = folder / "tree"
    for name in files():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(copy)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if ran.returncode:
        raise RuntimeError(f"the build failed:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


def files() -> list[str]:
    """Return every file of the repository that git does not ignore."""
    ran = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return [name for name in ran.stdout.split("\0") if name and (ROOT / name).is_file()]


def problems(wheel: Path, source: Path) -> Iterable[str]:
    """Yield what is wrong with the contents of the wheel and of the source distribution."""
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
    with tarfile.open(source) as archive:
        in_source = {name.partition("/")[2] for name in archive.getnames()}
    if f"-{__version__}-" not in wheel.name or f"-{__version__}.tar" not in source.name:
        yield f"{wheel.name} and {source.name} have another version than {__version__}"
    package = {name for name in files() if name.startswith("lopen/")}
    for name in sorted(package - in_wheel):
        yield f"the wheel lacks {name}"
    for name in sorted(package - in_source):
        yield f"the source distribution lacks {name}"
    for name in sorted(n for n in in_wheel if not n.startswith(("lopen/", "lopen-")) or "__pycache__" in n):
        yield f"the wheel holds {name}"
    for name in sorted(n for n in in_source if n.startswith(("tests/", "bench/", ".")) or "__pycache__" in n):
        yield f"the source distribution holds {name}"


def main() -> int:
    """Build into a temporary folder, check, and say what is wrong."""
    with tempfile.TemporaryDirectory(prefix="lopen-package-") as folder:
        wheel, source = build(Path(folder))
        found = list(problems(wheel, source))
        twine = [sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(source)]
        checked = subprocess.run(twine, capture_output=True, text=True, timeout=60, check=False)
        if checked.returncode:
            found.append(checked.stdout + checked.stderr)
        sys.stdout.write("".join(f"{line}\n" for line in found) or f"{wheel.name}: complete\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
