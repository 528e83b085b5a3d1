"""What decides which tests run at all: runner configuration, conftest, manifests, scripts that run the tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from lopen.oracle.tampering import pytest_settings
from lopen.oracle.tampering.conftest import conftest_findings
from lopen.oracle.tampering.manifests import (
    cargo_findings,
    javascript_findings,
    jvm_findings,
    package_findings,
    script_findings,
)
from lopen.oracle.tampering.suite import FileChange
from lopen.oracle.verdict import Finding

MAX_CHARS = 120_000  # both sides; nobody writes more configuration than that

Reader = Callable[[FileChange], Iterator[Finding]]

READERS: tuple[tuple[re.Pattern[str], Reader], ...] = (
    (
        re.compile(r"^(?:\.?pytest\.ini|\.?pytest\.toml|pyproject\.toml|tox\.ini|setup\.cfg)$"),
        pytest_settings.findings,
    ),
    (re.compile(r"^conftest\.py$"), conftest_findings),
    (re.compile(r"^package\.json$"), package_findings),
    (
        re.compile(r"^(?:jest|vitest|vite|karma|playwright|cypress)\.config\.\w+$|^\.mocharc\.\w+$"),
        javascript_findings,
    ),
    (re.compile(r"^Cargo\.toml$"), cargo_findings),
    (re.compile(r"^(?:pom\.xml|build\.gradle(?:\.kts)?|gradle\.properties|maven\.config)$"), jvm_findings),
    (
        re.compile(r"^(?:GNUm|[Mm])akefile$|^[Jj]ustfile$|^tox\.ini$|^noxfile\.py$|\.(?:sh|bash|mk)$"),
        script_findings,
    ),
)


def configuration_findings(changes: Sequence[FileChange]) -> list[Finding]:
    """Findings about files that are no tests and yet keep tests from running or from failing."""
    return [
        finding
        for change in changes
        if change.after is not None and len(change.after) + len(change.before or "") <= MAX_CHARS
        for pattern, reader in READERS
        if pattern.search(change.path.rpartition("/")[2])
        for finding in reader(change)
    ]
