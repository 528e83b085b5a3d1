"""Changes to JavaScript and TypeScript tests."""

from __future__ import annotations

from tests.test_integrity.examples import Example, change, innocent, swap, tampered

PATH = "src/money.test.ts"
MONEY = """
    import { add, sub } from './money';

    describe('money', () => {
      it('adds', () => {
        expect(add(2, 2)).toBe(4);
      });

      it('subtracts', () => {
        expect(sub(5, 3)).toBe(2);
      });
    });
"""


def body(after: str, before: str = "expect(add(2, 2)).toBe(4);") -> tuple[str, str]:
    """Two versions of one test's body."""
    return f"it('adds', () => {{\n{before}\n}});\n", f"it('adds', () => {{\n{after}\n}});\n"


def swapped(old: str, new: str) -> tuple[str, str]:
    """The file, and the file with `old` replaced."""
    return swap(MONEY, old, new)


TAMPERED: tuple[Example, ...] = (
    tampered(
        "a test is removed",
        "money > subtracts",
        change(PATH, *swapped("it('subtracts', () => {\n        expect(sub(5, 3)).toBe(2);\n      });", "")),
    ),
    tampered("a test file is removed", "was deleted with 2 tests", change(PATH, MONEY, None)),
    tampered(
        "a test is commented out",
        "subtracts",
        change(
            PATH,
            *swapped(
                "it('subtracts', () => {\n        expect(sub(5, 3)).toBe(2);\n      });",
                "/* it('subtracts', () => {\n        expect(sub(5, 3)).toBe(2);\n      }); */",
            ),
        ),
    ),
    *(
        tampered(f"it becomes {word}", "from running", change(PATH, *swapped("it('adds'", f"{word}('adds'")))
        for word in (
            "it.skip",
            "xit",
            "test.todo",
            "it.failing",
            "it.skipIf(true)",
            "xtest",
            "it.skip.each([1])",
            "test.fixme",
            "it.fails",
        )
    ),
    *(
        tampered(
            f"describe becomes {word}",
            "keeps 2 tests from running",
            change(PATH, *swapped("describe(", f"{word}(")),
        )
        for word in ("describe.skip", "xdescribe", "describe.todo")
    ),
    *(
        tampered(
            f"a test becomes {word}",
            "keeps other tests",
            change(PATH, *swapped("it('adds'", f"{word}('adds'")),
        )
        for word in ("it.only", "fit", "test.only")
    ),
    tampered(
        "a group becomes describe.only",
        "keeps other tests",
        change(PATH, *swapped("describe(", "describe.only(")),
    ),
    tampered(
        "a new test narrows the run",
        "keeps other tests",
        change(PATH, None, "it.only('x', () => { expect(f()).toBe(1); });\n"),
    ),
    tampered(
        "a test loses its body",
        "without a body",
        change(PATH, "it('adds', () => { expect(add(1, 1)).toBe(2); });\n", "it('adds');\n"),
    ),
    tampered(
        "a test of node is skipped by option",
        "{ skip }",
        change(
            PATH,
            "test('adds', () => { assert.equal(add(1, 1), 2); });\n",
            "test('adds', { skip: true }, () => { assert.equal(add(1, 1), 2); });\n",
        ),
    ),
    tampered(
        "a mocha test skips itself",
        "this.skip",
        change(
            PATH,
            "it('adds', function () { assert.equal(add(1, 1), 2); });\n",
            "it('adds', function () { this.skip(); assert.equal(add(1, 1), 2); });\n",
        ),
    ),
    *(
        tampered(f"the body becomes `{after}`", "checks nothing", change(PATH, *body(after)))
        for after in (
            "expect(true).toBe(true);",
            "expect(true).toBeTruthy();",
            "expect(1).toEqual(1);",
            "const x = add(2, 2); expect(x).toBe(x);",
            "expect(add(2, 2));",
            "add(2, 2);",
            "",
            "console.log(add(2, 2));",
            "assert(true);",
            "assert.equal(1, 1);",
            "return;\nexpect(add(2, 2)).toBe(4);",
            "if (false) { expect(add(2, 2)).toBe(4); }",
            "try { expect(add(2, 2)).toBe(4); } catch (e) { console.log(e); }",
            "try {\n  expect(add(2, 2)).toBe(4);\n} catch {}",
            "// expect(add(2, 2)).toBe(4);",
        )
    ),
    *(
        tampered(
            f"toBe is loosened to `{after}`", "less strictly", change(PATH, *body(after)), worst="warning"
        )
        for after in (
            "expect(add(2, 2)).toBeDefined();",
            "expect(add(2, 2)).toBeTruthy();",
            "expect(add(2, 2)).not.toBe(5);",
            "expect(add(2, 2)).toBeGreaterThan(0);",
            "expect(add(2, 2)).toEqual(expect.anything());",
        )
    ),
    tampered(
        "an expect is dropped",
        "1 assertion less",
        change(
            PATH,
            *body("expect(add(2, 2)).toBe(4);", "expect(add(2, 2)).toBe(4);\nexpect(add(0, 1)).toBe(1);"),
        ),
        worst="warning",
    ),
    tampered(
        "rows are dropped",
        "1 rows where it ran for 3",
        change(
            PATH,
            "it.each([[1, 2], [2, 4], [3, 6]])('doubles', (a, b) => { expect(twice(a)).toBe(b); });\n",
            "it.each([[1, 2]])('doubles', (a, b) => { expect(twice(a)).toBe(b); });\n",
        ),
        worst="warning",
    ),
    tampered(
        "a request expects nothing any more",
        "checks nothing",
        change(
            "test/app.js",
            "it('x', function (done) { request(app).get('/').expect(200, 'ok', done); });\n",
            "it('x', function (done) { request(app).get('/').end(done); });\n",
        ),
    ),
    tampered(
        "a helper stops asserting",
        "checks nothing",
        change(
            PATH,
            "function same(a, b) { expect(a).toBe(b); }\nit('x', () => { same(f(), 1); });\n",
            "function same(a, b) { return a === b; }\nit('x', () => { same(f(), 1); });\n",
        ),
    ),
    tampered(
        "an expectation is rewritten",
        "expects another result",
        change(PATH, *body("expect(add(2, 2)).toBe(5);")),
        worst="info",
    ),
    *(
        tampered(
            f"the file gains `{lines}`", "keeps 2 tests from running", change(PATH, MONEY, lines + MONEY)
        )
        for lines in (
            "beforeEach(() => this.skip());",
            "beforeEach(function () { this.skip(); });",
            "before(function () {\n  if (process.env.CI) this.skip();\n});",
            "beforeEach((ctx) => ctx.skip());",
            "test.beforeEach(() => { test.skip(); });",
            "const it = test.skip;",
            "const describe = xdescribe;",
            "it = xit;",
            "globalThis.it = test.skip;",
            "const it = () => {};",
            "const it = (name, body) => {};",
            "const it = async (name: string, body: () => void): Promise<void> => undefined;",
            "const it = function () {};",
            "function it(name, body) {}",
            "function describe() { return; }",
            "global.describe = () => {};",
            "const expect = () => ({ toBe() {} });",
            "function expect(value) {\n  return new Proxy({}, { get: () => () => {} });\n}",
        )
    ),
    tampered(
        "a hook of a group skips its tests",
        "beforeEach's this.skip keeps 1 test from running: a > x",
        change(
            PATH,
            *(
                f"describe('a', () => {{\n{hook}\nit('x', () => {{ expect(f()).toBe(1); }});\n}});\nit('y', () => {{ expect(g()).toBe(2); }});\n"
                for hook in ("", "beforeEach(function () { this.skip(); });")
            ),
        ),
    ),
    tampered(
        "tests are called by another name that skips",
        "money > adds",
        change(PATH, MONEY, "const later = test.skip;\n" + MONEY.replace("it('adds'", "later('adds'")),
    ),
    *(
        tampered(
            f"the file gains `{line}`", "keeps other tests from running", change(PATH, MONEY, line + MONEY)
        )
        for line in ("process.exit(0);", "process.exit();", "Deno.exit(0);")
    ),
    tampered(
        "a new file ends the run",
        "keeps other tests from running",
        change("src/a.test.js", None, "process.exit(0);\n"),
    ),
    tampered(
        "a test ends the process",
        "process.exit(0) keeps 1 test",
        change(PATH, *body("process.exit(0);\nexpect(add(2, 2)).toBe(4);")),
    ),
)

INNOCENT: tuple[Example, ...] = (
    innocent("a new test file", change(PATH, None, MONEY)),
    innocent(
        "a test is added",
        change(
            PATH,
            *swapped(
                "it('subtracts'", "it('is zero', () => {\n expect(add(0, 0)).toBe(0);\n});\nit('subtracts'"
            ),
        ),
    ),
    innocent("a test file moves", change(PATH, MONEY, None), change("test/money.test.ts", None, MONEY)),
    innocent("a test is retitled", change(PATH, *swapped("'adds'", "'adds two numbers'"))),
    innocent("a group is retitled", change(PATH, *swapped("'money'", "'the money module'"))),
    innocent(
        "a test moves out of its group",
        change(
            PATH,
            "describe('a', () => {\n it('x', () => { expect(f()).toBe(1); });\n});\n",
            "it('x', () => { expect(f()).toBe(1); });\n",
        ),
    ),
    innocent(
        "an expect is added", change(PATH, *body("expect(add(2, 2)).toBe(4);\nexpect(add(1, 1)).toBe(2);"))
    ),
    innocent(
        "an expect is stricter",
        change(PATH, *body("expect(add(2, 2)).toBe(4);", "expect(add(2, 2)).toBeDefined();")),
    ),
    innocent(
        "a body becomes an expression",
        change(
            PATH, "it('x', () => {\n  expect(f()).toBe(1);\n});\n", "it('x', () => expect(f()).toBe(1));\n"
        ),
    ),
    innocent(
        "a promise is returned",
        change(
            PATH,
            "it('x', () => { expect(f()).toBe(1); });\n",
            "it('x', () => {\n  return expect(f()).resolves.toBe(1);\n});\n",
        ),
    ),
    innocent(
        "a test becomes async",
        change(PATH, *body("expect(await add(2, 2)).toBe(4);", "expect(add(2, 2)).toBe(4);")),
    ),
    innocent(
        "tests become a table",
        change(
            PATH,
            "it('one', () => { expect(twice(1)).toBe(2); });\nit('two', () => { expect(twice(2)).toBe(4); });\n",
            "it.each([[1, 2], [2, 4]])('twice %i', (a, b) => { expect(twice(a)).toBe(b); });\n",
        ),
    ),
    innocent(
        "a row is added",
        change(
            PATH,
            "it.each([[1, 2]])('x', (a, b) => { expect(twice(a)).toBe(b); });\n",
            "it.each([[1, 2], [2, 4]])('x', (a, b) => { expect(twice(a)).toBe(b); });\n",
        ),
    ),
    innocent("a skip is taken away", change(PATH, MONEY.replace("it('adds'", "it.skip('adds'"), MONEY)),
    innocent("an only is taken away", change(PATH, MONEY.replace("it('adds'", "it.only('adds'"), MONEY)),
    innocent(
        "quotes and semicolons",
        change(
            PATH,
            *swapped(
                "it('adds', () => {\n        expect(add(2, 2)).toBe(4);",
                'it("adds", () => {\n        expect(add(2, 2)).toBe(4)',
            ),
        ),
    ),
    innocent(
        "a string speaks of it.skip",
        change(
            PATH,
            *body(
                "expect(render(`it.skip('x', () => {})`)).toBe(\"it.only('y')\");\nexpect(add(2, 2)).toBe(4);"
            ),
        ),
    ),
    innocent(
        "a regular expression with a brace and a quote",
        change(PATH, *body("expect(add(2, 2)).toBe(4);\nexpect(/[{\"'`(]/.test(s)).toBe(false);")),
    ),
    innocent(
        "a template with code in it",
        change(PATH, *body("expect(add(2, 2)).toBe(4);\nexpect(t(`a ${b ? `c }` : '}'} d`)).toBe('x');")),
    ),
    innocent(
        "a function under test is called skip",
        change(PATH, *body("expect(list.skip(2)).toEqual([3]);\nexpect(add(2, 2)).toBe(4);")),
    ),
    innocent(
        "a new test expects a rejection by hand",
        change(
            PATH,
            MONEY,
            MONEY
            + "\nit('rejects', async () => {\n try { await f(); throw new Error('accepted'); } catch (e) { expect(e.code).toBe(1); }\n});\n",
        ),
    ),
    innocent("expects move into a helper", change(PATH, *body("checkTotal(add(2, 2), 4);"))),
    innocent(
        "hooks are added",
        change(PATH, *swapped("it('adds'", "beforeEach(() => { reset(); });\nafter(() => {});\nit('adds'")),
    ),
    innocent("a source file with a function called test", change("src/run.ts", "test('x', () => {});\n", "")),
    *(
        innocent(f"the file gains `{lines}`", change(PATH, MONEY, lines + MONEY))
        for lines in (
            "beforeEach(() => { list.skip(3); });",
            "beforeEach(function () { this.timeout(100); });",
            "const it = (name, body) => test(name, wrap(body));",
            "const test = base.extend({ page: async ({}, use) => { await use(1); } });",
            "const { it, describe, expect } = require('vitest');",
            "const expect = chai.expect;",
            "const it = require('node:test');",
            "const describe = (name, body) => { body(); };",
            "function expect(actual) {\n  return { toBe(x) { if (actual !== x) throw new Error('no'); } };\n}",
            "afterAll(() => { server.close(); });",
            "function stop() { process.exit(0); }",
            "process.on('exit', (code) => { log(code); });",
            "const suite = { test: () => {} };",
        )
    ),
    innocent(
        "a test of how the program ends",
        change(PATH, *body("expect(() => process.exit(0)).toThrow();\nexpect(add(2, 2)).toBe(4);")),
    ),
    innocent("a program ends", change("src/cli.js", None, "main();\nprocess.exit(0);\n")),
)
