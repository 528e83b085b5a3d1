"""When a command line is a test run."""

from __future__ import annotations

import pytest

from lopen.verification.runners import runs_tests


@pytest.mark.parametrize(
    ("command", "tests"),
    [
        ("pytest -q", "pytest -q"),
        ("pytest tests/test_a.py -k login", "pytest -q"),
        ("cd api && timeout 60 .venv/bin/python -m pytest -x 2>&1 | tail -5", "pytest -q"),
        ("python3.12 -m pytest", "python -m pytest"),
        ("FOO=1 uv run pytest", "pytest"),
        ("poetry run pytest", "uv run pytest"),
        ("bash run_tests.sh", "./run_tests.sh"),
        ("npm run test -- login", "npm test"),
        ("npx vitest run", "vitest"),
        ("go test ./pkg/...", "go test ./..."),
        ("cargo test --lib", "cargo test"),
        ("make -s test", "make test"),
        ("mvn -q test", "mvn test"),
        ("python run_tests.py", "python3 ./run_tests.py"),
        ("pip install x; pytest", "cd . && pytest"),
        ("(cd a; pytest)", "pytest"),
        ("time pytest\n", "pytest"),
        ("if true; then pytest; fi", "pytest"),
        ("bash -c 'pytest -q'", "pytest"),
        ('cd sub && sh -ec "timeout 60 pytest"', "pytest -q"),
        ("for d in a b; do (cd $d && pytest); done", "if true; then pytest; fi"),
        ("x=$(pytest -q 2>&1); echo $x", "pytest"),
    ],
)
def test_test_runs_are_told_by_the_program_they_run(command: str, tests: str) -> None:
    assert runs_tests(command, tests)


@pytest.mark.parametrize(
    ("command", "tests"),
    [
        ("pip install pytest", "pytest"),
        ("grep -r pytest .", "pytest"),
        ("echo pytest", "pytest"),
        ("cat pytest.ini", "pytest"),
        ("npm install", "npm test"),
        ("npm run build", "npm run test"),
        ("cargo build", "cargo test"),
        ("go vet ./...", "go test ./..."),
        ("make", "make test"),
        ("ls | tee log", "pytest | tee log"),
        ("python main.py", "python -m pytest"),
        ("cd tests", "cd tests && pytest"),
        ('pytest "unclosed', "pytest"),
        ("", "pytest"),
        ("pytest", ""),
        ("pytest", None),
    ],
)
def test_other_commands_are_no_test_runs(command: str, tests: str | None) -> None:
    assert not runs_tests(command, tests)
