"""How long it takes to find what a large change does to its tests."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.rows import Row
from lopen.test_integrity import FileChange, find_tampering

SIZE = 250_000  # characters of removed and added lines
_TESTS = {
    "tests/test_part_{n}.py": "def test_adds_{n}_{i}(shop):\n    found = shop.add({i}, {n})\n    assert found.total == {i}\n"
    "    with pytest.raises(ShopError, match='full'):\n        shop.add({n}, {i})\n\n\n",
    "src/part{n}.test.ts": "it('adds {i} to {n}', async () => {{\n  const found = await shop.add({i}, {n});\n"
    "  expect(found.total).toBe({i});\n  await expect(shop.add({n})).rejects.toThrow('full');\n}});\n\n",
    "shop/part{n}_test.go": "func TestAdds{n}x{i}(t *testing.T) {{\n\tfound, err := shop.Add({i}, {n})\n\tif err != nil {{\n"
    '\t\tt.Fatal(err)\n\t}}\n\tif found.Total != {i} {{\n\t\tt.Errorf("got %d", found.Total)\n\t}}\n}}\n\n',
    "tests/part{n}.rs": "#[test]\nfn adds_{n}_{i}() {{\n    let found = shop().add({i}, {n}).unwrap();\n"
    "    assert_eq!(found.total, {i});\n    assert!(shop().add({n}, {i}).is_err());\n}}\n\n",
    "src/test/java/Part{n}Test.java": "class Adds{i}Test {{\n  @Test\n  void adds() {{\n    assertEquals({i}, shop.add({i}, {n}).total());\n"
    "    assertThrows(ShopException.class, () -> shop.add({n}));\n  }}\n}}\n\n",
}


def change(size: int) -> list[FileChange]:
    """A change of tests in five languages, of about `size` removed and added characters; a third of the tests weaken."""
    changes: list[FileChange] = []
    length = number = 0
    while length < size:
        number += 1
        for path, test in _TESTS.items():
            before = "".join(test.format(n=number, i=i) for i in range(20))
            after = "".join(
                test.format(n=number, i=i).replace("total", "sum" if i % 3 else "total") for i in range(19)
            )
            changes.append(FileChange(path.format(n=number), before, after))
            length += len(before) + len(after)
    return changes


def rows() -> Iterator[Row]:
    """The processor time of the whole detection over such a change."""
    work = change(SIZE)
    first = _seconds(work[:5])
    took = _seconds(work)
    yield Row(
        "test integrity over a change of 250 kB",
        took,
        0.5,
        "s",
        detail=f"{len(work)} files, {first:.2f} s for the first five",
    )


def _seconds(work: list[FileChange]) -> float:
    start = time.process_time()
    find_tampering(work)
    return time.process_time() - start
