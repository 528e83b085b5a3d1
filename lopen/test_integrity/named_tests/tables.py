"""How tests look in C#, Kotlin, Ruby, PHP, C and C++, and what skips them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """How to read one language.

    `declared`: a query for what may be a test: `name` (or `title`) and `test`. `test`: what its head must match (its
    annotations, words and name, to the body). `skipped`: what in the head of a test or of a group around it keeps it
    from running. `skips`: a call in a body that does. `groups`: nodes around tests, whose heads count too.
    """

    grammar: str
    paths: str
    declared: str
    test: str
    skipped: str
    skips: str
    groups: frozenset[str]


TABLES = {
    "C#": Table(
        "csharp",
        r"\.cs$",
        "(method_declaration name: (identifier) @name) @test",
        r"\[[^\]]*\b(?:Fact|Theory|Test|TestCase|TestCaseSource|TestMethod|DataTestMethod|SkippableFact)\b",
        r"\[[^\]]*\bIgnore\b[^\]]*\]|\b(?:Skip|Ignore|IgnoreReason)\s*=\s*[\w\"$@][^,)]*|\[\s*Explicit\b[^\]]*\]",
        r"\bAssert\s*\.\s*(?:Ignore|Inconclusive|Skip)\w*\s*\(|\bSkip\.(?:If|IfNot)\s*\(\s*(?:true|false)",
        frozenset({"class_declaration"}),
    ),
    "Kotlin": Table(
        "kotlin",
        r"(?:^|/)(?:test|androidTest|commonTest|jvmTest)/.*\.kt$|Test\w*\.kt$",
        "(function_declaration name: (identifier) @name) @test",
        r"@(?:\w+\.)*(?:Test|ParameterizedTest|RepeatedTest|TestFactory)\b",
        r"@(?:\w+\.)*(?:Ignore|Disabled)\b(?:\([^)]*\))?|@(?:Enabled|Disabled)(?:If|On|For)\w*\([^)]*\)",
        r"\b(?:assumeTrue|assumeFalse|abort)\s*\(|\bthrow\s+(?:TestAbortedException|AssumptionViolatedException)\b",
        frozenset({"class_declaration"}),
    ),
    "PHP": Table(
        "php",
        r"Test\.php$|(?:^|/)tests?/.*\.php$",
        "(method_declaration name: (name) @name) @test",
        r"\bfunction\s+test|@test\b|#\[(?:\w+\\)*Test\b",
        r"#\[(?:\w+\\)*(?:RequiresPhp|RequiresOperatingSystem|RequiresEnvironmentVariable|Group)\b[^\]]*\]",
        r"(?:\$this\s*->|self\s*::|static\s*::)\s*mark(?:TestSkipped|TestIncomplete)\s*\(",
        frozenset({"class_declaration"}),
    ),
    "Ruby": Table(
        "ruby",
        r"_(?:spec|test)\.rb$|(?:^|/)test_\w+\.rb$|(?:^|/)(?:spec|test)/.*\.rb$",
        """
        (method name: (identifier) @name) @test
        (call method: (identifier) @word arguments: (argument_list . (_) @title)) @test
        """,
        r"^(?:x|f)?(?:it|specify|example|test)\b|^skip\b|^def\s+test_|^pending\b",
        r"^x(?:it|specify|describe|context|example)\b|^(?:skip|pending)\b|,\s*(?::skip\b|:pending\b|skip:\s*(?!false)[^,]+|pending:\s*(?!false)[^,]+)",
        r"(?<![\w.:@$\"'])(?:skip|pending|omit)\b(?!\s*(?:=|:|do\b))",
        frozenset({"call", "class", "module"}),
    ),
    "C": Table(
        "c",
        r"(?:^|/|_)tests?(?:/|_|\.).*\.?c$|test\w*\.c$",
        "(function_definition declarator: (function_declarator declarator: (identifier) @name)) @test",
        r"\b(?:void|int|static)\b[^({]*\btest\w*\s*\(|^START_TEST\s*\(|^(?:Test|ParameterizedTest|CTEST)\s*\(",
        r"\.disabled\s*=\s*(?:true|1)",
        r"\b(?:TEST_IGNORE\w*|skip|cr_skip\w*|g_test_skip|ck_skip)\s*\(",
        frozenset(),
    ),
    "C++": Table(
        "cpp",
        r"(?:^|/)tests?/.*\.(?:cc|cpp|cxx|hpp)$|[_.-]?(?:unit)?tests?\.(?:cc|cpp|cxx)$|(?:^|/)test_\w+\.(?:cc|cpp|cxx)$|Tests?\.(?:cc|cpp)$",
        "",
        r"",
        r"\bDISABLED_\w+|\"[^\"]*\[!?(?:\.|hide|mayfail|shouldfail)[^\"]*\"|\*\s*(?:doctest::)?(?:skip|may_fail|should_fail)\s*\([^)]*\)",
        r"\b(?:GTEST_SKIP|SKIP)\s*\(\s*\)?",
        frozenset(),
    ),
}
