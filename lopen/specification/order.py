"""The order of modules that build on each other: `after:` in the front matter names the modules that come before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

After = Mapping[str, Sequence[str]]  # module → the modules that come before it


def in_order(after: After, modules: Sequence[str]) -> list[str]:
    """Return the modules with each behind those that come before it; a circle's are in the order given."""
    ordered: list[str] = []

    def visit(module: str, above: tuple[str, ...]) -> None:
        if module in ordered or module in above:
            return
        for earlier in after.get(module, ()):
            visit(earlier, (*above, module))
        ordered.append(module)

    for module in modules:
        visit(module, ())
    return [module for module in ordered if module in set(modules)]


def order_problems(module: str, after: After) -> Iterator[str]:
    """Yield what is wrong with the modules that come before `module`: an unknown name, or a circle."""
    for earlier in after.get(module, ()):
        if earlier not in after:
            yield f"after: there is no module named {earlier}"
        elif circle := _way(after, earlier, module, ()):
            yield f"after: the modules wait for each other: {' → '.join((module, *circle))}"


def _way(after: After, start: str, end: str, above: tuple[str, ...]) -> tuple[str, ...]:
    """Return a way from `start` to `end` over the modules before each; empty if there is none."""
    if start == end:
        return (end,)
    for earlier in after.get(start, ()):
        if earlier not in above and (way := _way(after, earlier, end, (*above, start))):
            return (start, *way)
    return ()
