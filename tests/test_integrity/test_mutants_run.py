"""Mutants and the neutral edit on the languages' own tools, where they are installed."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path

import pytest

from lopen.judge.runner_output import failed_tests
from lopen.test_integrity import FileChange
from lopen.test_integrity.mutants import mutants
from lopen.test_integrity.mutation_controls import did_not_compile, inserted, neutral_edit

# program, test command, the file with the code, the files, and how many mutants are noticed, refused, survive
PROJECTS: dict[str, tuple[str, str, dict[str, str], tuple[int, int, int]]] = {
    "go": (
        "go test ./...",
        "calc.go",
        {
            "go.mod": "module example.org/calc\n\ngo 1.18\n",
            "calc.go": 'package calc\n\nfunc Name(n string) string {\n\treturn "n" + n\n}\n',
            "calc_test.go": 'package calc\n\nimport "testing"\n\nfunc TestName(t *testing.T) {\n'
            '\tif Name("a") != "na" {\n\t\tt.Fatal()\n\t}\n}\n',
        },
        (1, 1, 0),
    ),
    "cargo": (
        "cargo test --offline --quiet --lib",
        "src/lib.rs",
        {
            "Cargo.toml": '[package]\nname = "calc"\nversion = "0.1.0"\nedition = "2021"\n',
            "src/lib.rs": "pub fn half(n: u32) -> Result<u32, String> {\n    Ok(n / 2)\n}\n\n#[cfg(test)]\nmod tests {\n"
            "    #[test]\n    fn halves() {\n        assert_eq!(super::half(8), Ok(4));\n    }\n}\n",
        },
        (3, 0, 0),
    ),
    "node": (
        "node --test",
        "calc.js",
        {
            "calc.js": "exports.big = function (n) {\n  return n > 10;\n};\n",
            "calc.test.js": 'const test = require("node:test");\nconst { big } = require("./calc.js");\n'
            'test("big", () => {\n  if (!big(12) || big(3)) throw new Error("big");\n});\n',
        },
        (2, 0, 1),
    ),
    "javac": (
        "javac -d out Calc.java CalcTest.java && java -cp out CalcTest",
        "Calc.java",
        {
            "Calc.java": 'class Calc {\n  static String name(String n) {\n    return "n" + n;\n  }\n}\n',
            "CalcTest.java": "class CalcTest {\n  public static void main(String[] given) {\n"
            '    if (!"na".equals(Calc.name("a"))) throw new AssertionError();\n  }\n}\n',
        },
        (1, 1, 0),
    ),
}


@pytest.mark.parametrize("program", PROJECTS)
def test_mutants_run_on_the_languages_own_tools(tmp_path: Path, program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed: the tests need no toolchain but Python's")
    command, path, files, expected = PROJECTS[program]
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    change = FileChange(path, None, files[path])

    home = Path(pwd.getpwuid(os.getuid()).pw_dir)  # the tests' own HOME has no toolchain of rustup's
    environment = {"RUSTUP_HOME": str(home / ".rustup"), **os.environ}

    def run(content: bytes) -> tuple[int, str]:
        (tmp_path / path).write_bytes(content)
        ran = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return ran.returncode, ran.stdout + ran.stderr

    neutral = inserted(files[path].encode(), neutral_edit(change))
    assert neutral != files[path].encode()
    code, output = run(neutral)
    assert code == 0, output
    results = [run(mutant.applied(files[path].encode())) for mutant in mutants([change])]
    refused = [output for code, output in results if code and did_not_compile(path, output)]
    failed = [output for code, output in results if code and not did_not_compile(path, output)]

    assert (len(failed), len(refused), len(results) - len(failed) - len(refused)) == expected, results
    assert program == "javac" or all(failed_tests(output) for output in failed), failed
