"""How tests look in C#, Kotlin, Ruby, PHP, C and C++, and what skips them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """How to read one language.

    `declared`: a query for what may be a test: `name` (or `title`) and `test`. `test`: what its head must match (its
    annotations, words and name, to the body). `skipped`: what in the head of a test or of a group around it keeps it
    from running. `skips`: a call in a body that does. `groups`: nodes around tests, whose heads count too.
    `blocks`: a query for titled blocks (`test`, `body`), which are tests where their head matches `titled` and groups
    where they hold others. `runs`: where the usual runner looks for tests.
    """

    grammar: str
    paths: str
    declared: str
    test: str
    skipped: str
    skips: str
    groups: frozenset[str]
    blocks: str = ""
    titled: str = ""
    runs: str = ""


TABLES = {
    "C#": Table(
        "csharp",
        r"\.cs$",
        "(method_declaration name: (identifier) @name) @test",
        r"\[[^\]]*\b(?:\w*Fact|\w*Theory|Test|TestCase|TestCaseSource|TestMethod|DataTestMethod)\b",
        r"\[[^\]]*\bIgnore\b[^\]]*\]|\b(?:Skip|Ignore|IgnoreReason)\s*=\s*[\w\"$@][^,)]*|\[[^\]]*\bExplicit\b[^\]]*\]",
        r"\bAssert\s*\.\s*(?:Ignore|Inconclusive|Skip)\w*\s*\(|\bSkip\.(?:If|IfNot)\s*\(|\bAssume\.That\s*\(",
        frozenset({"class_declaration"}),
    ),
    "Kotlin": Table(
        "kotlin",
        r"(?:^|/)(?:test|androidTest|commonTest|jvmTest)/.*\.kt$|Test\w*\.kt$",
        "(function_declaration name: (identifier) @name) @test",
        r"@(?:\w+\.)*(?:Test|ParameterizedTest|RepeatedTest|TestFactory)\b",
        r"@(?:\w+\.)*(?:Ignored?|Disabled)\b(?:\([^)]*\))?|@(?:Enabled|Disabled)(?:If|On|For)\w*\([^)]*\)"
        r"|^x(?:test|it|describe|context|should|expect|feature|scenario|given|when|then)\b|^(?:\w+\()?\s*\"!|\benabled\s*=\s*false\b"
        r"|\benabled(?:If|OrReasonIf)\s*=\s*[^,)]+",
        r"\b(?:assumeTrue|assumeFalse|abort)\s*\(|\bthrow\s+(?:TestAbortedException|AssumptionViolatedException)\b",
        frozenset({"class_declaration"}),
        """
        (call_expression (annotated_lambda) @body) @test
        (infix_expression (string_literal) (lambda_literal) @body) @test
        (binary_expression (string_literal) (lambda_literal) @body) @test
        """,
        r"^(?:x?(?:test|it|should|expect|scenario|describe|context|feature|given|when|then|and|Given|When|Then|And|`\w+`)\s*\()?\s*\"|^withData\s*\(",
    ),
    "PHP": Table(
        "php",
        r"Test\.php$|(?:^|/)tests?/.*\.php$",
        "(method_declaration name: (name) @name) @test",
        r"\bfunction\s+test|@test\b|#\[(?:\w+\\)*Test\b",
        r"#\[(?:\w+\\)*Requires\w+\b[^\]]*\]|@requires\s+[^\n*]+|->\s*(?:skip|skipOnLinux|onlyOn(?:Windows|Mac)|todo)\([^)]*\)",
        r"(?:\$this\s*->|self\s*::|static\s*::)\s*mark(?:TestSkipped|TestIncomplete)\s*\(",
        frozenset({"class_declaration"}),
        "(function_call_expression function: (name) arguments: (arguments)) @test",
        r"^(?:it|test|describe|todo|arch)\s*\(",
        r"Test\.php$",
    ),
    "Ruby": Table(
        "ruby",
        r"_(?:spec|test)\.rb$|(?:^|/)test_\w+\.rb$|(?:^|/)(?:spec|test)/.*\.rb$",
        """
        (method name: (identifier) @name) @test
        (call method: (identifier) @word arguments: (argument_list . (_) @title)) @test
        (call method: (identifier) @word !arguments block: (_) @title) @test
        """,
        r"^(?:x|f)?(?:it|specify|example|test)\b|^skip\b|^def\s+test_|^pending\b"
        r"|^(?:it_behaves_like|it_should_behave_like|include_examples)\b",
        r"^x(?:it|specify|describe|context|example)\b|^(?:skip|pending)\b|,\s*(?::skip\b|:pending\b|skip:\s*(?!false)[^,]+|pending:\s*(?!false)[^,]+|if:\s*(?:false|nil)\b|unless:\s*true\b)",
        r"(?<![\w.:@$\"'])(?:skip|pending|omit)\b(?!\s*(?:=|:|do\b))",
        frozenset({"call", "class", "module"}),
        runs=r"_(?:spec|test)\.rb$|(?:^|/)test_\w+\.rb$",
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
        r"\bDISABLED_\w+|\"[^\"]*\[!?(?:\.|hide|mayfail|shouldfail)[^\"]*\"|\*\s*(?:\w+::)*(?:skip|may_fail|should_fail|disabled|expected_failures)\s*\([^)]*\)",
        r"\b(?:GTEST_SKIP|SKIP)\s*\(\s*\)?",
        frozenset(),
    ),
}
