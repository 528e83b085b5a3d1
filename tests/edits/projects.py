"""The small projects that the edits begin with: one a language, each with passing tests."""

from __future__ import annotations

from collections.abc import Mapping

from tests.ran import SHELL_PYTHON

PYTHON: Mapping[str, str] = {
    "pricing.py": '''"""Prices in cents."""

RATES = {"basic": 100, "plus": 250}


def net(kind, count):
    if count < 0:
        raise ValueError("count must not be negative")
    return RATES[kind] * count


def gross(kind, count, tax=20):
    return net(kind, count) * (100 + tax) // 100


def label(kind):
    return kind.title()


def parse(text):
    kind, _, count = text.partition(":")
    return kind.strip(), int(count or 1)


def kinds():
    return ["basic", "plus"]
''',
    "tests/test_pricing.py": """import pytest

import pricing


@pytest.mark.parametrize(("text", "found"), [("basic", ("basic", 1)), ("plus:3", ("plus", 3)), (" plus :2", ("plus", 2))])
def test_parse(text, found):
    assert pricing.parse(text) == found


@pytest.mark.parametrize("text", ["basic:x", "plus:1.5"])
def test_parse_refuses(text):
    with pytest.raises(ValueError):
        pricing.parse(text)


def test_net():
    assert pricing.net("basic", 2) == 200
    assert pricing.net("plus", 0) == 0


def test_net_refuses_negative_counts():
    with pytest.raises(ValueError, match="negative"):
        pricing.net("basic", -1)


def test_gross():
    assert pricing.gross("basic", 1) == 120
    assert pricing.gross("plus", 1, tax=0) == 250
""",
    "tests/test_label.py": """import unittest

import pricing


class LabelTest(unittest.TestCase):
    def test_label(self):
        self.assertEqual(pricing.label("basic"), "Basic")

    def test_kinds(self):
        self.assertEqual(pricing.kinds(), ["basic", "plus"])
""",
    "pytest.ini": "[pytest]\npythonpath = .\n",
}

NODE: Mapping[str, str] = {
    "package.json": '{\n  "name": "cart",\n  "version": "1.0.0",\n  "scripts": {"test": "node --test"}\n}\n',
    "cart.js": """'use strict';

function total(items) {
  return items.reduce((sum, item) => sum + item.price * item.count, 0);
}

function names(items) {
  return items.map((item) => item.name);
}

function find(items, name) {
  const item = items.find((one) => one.name === name);
  if (!item) throw new Error(`no item ${name}`);
  return item;
}

module.exports = { total, names, find };
""",
    "test/cart.test.js": """'use strict';
const test = require('node:test');
const assert = require('node:assert');
const { total, names, find } = require('../cart.js');

const ITEMS = [{ name: 'tea', price: 3, count: 2 }, { name: 'cup', price: 5, count: 1 }];

test('total', () => {
  assert.strictEqual(total(ITEMS), 11);
  assert.strictEqual(total([]), 0);
});

test('names', () => {
  assert.deepStrictEqual(names(ITEMS), ['tea', 'cup']);
});

test('find', () => {
  assert.strictEqual(find(ITEMS, 'cup').price, 5);
  assert.throws(() => find(ITEMS, 'pan'), /no item pan/);
});
""",
}

RUST: Mapping[str, str] = {
    "Cargo.toml": '[package]\nname = "span"\nversion = "0.1.0"\nedition = "2021"\n',
    "Cargo.lock": 'version = 3\n\n[[package]]\nname = "span"\nversion = "0.1.0"\n',
    ".gitignore": "target/\n",
    "src/lib.rs": """pub fn length(from: i64, to: i64) -> i64 {
    to - from
}

pub fn overlap(a: (i64, i64), b: (i64, i64)) -> bool {
    a.0 < b.1 && b.0 < a.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures() {
        assert_eq!(length(2, 5), 3);
    }

    #[test]
    fn overlaps() {
        assert!(overlap((0, 2), (1, 3)));
        assert!(!overlap((0, 1), (1, 2)));
    }
}
""",
}

C: Mapping[str, str] = {
    ".gitignore": "check\n",
    "Makefile": "test:\n\t$(CC) -o check count.c test_count.c && ./check\n",
    "count.h": "int count(const char *text, char wanted);\n",
    "count.c": """#include "count.h"

int count(const char *text, char wanted) {
    int found = 0;
    for (; *text; text++) found += *text == wanted;
    return found;
}
""",
    "test_count.c": """#include <assert.h>
#include <stdio.h>
#include "count.h"

static void test_none(void) { assert(count("abc", 'x') == 0); }
static void test_some(void) { assert(count("banana", 'a') == 3); }

int main(void) {
    test_none();
    test_some();
    puts("2 passed, 0 failed");
    return 0;
}
""",
}

PROJECTS = {"python": PYTHON, "node": NODE, "rust": RUST, "c": C}
COMMANDS = {
    # No plugin of the environment that measures: they are no part of these projects, and cost a second a run
    "python": f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {SHELL_PYTHON} -m pytest -q -p no:cacheprovider",
    "node": "npm test --silent",
    "rust": "cargo test --offline --quiet",
    "c": "make --silent test",
}
