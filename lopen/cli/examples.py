"""The examples at the end of every `--help`, by the words of the command. Standard library only."""

from __future__ import annotations

from typing import Any

EXAMPLES: dict[str, tuple[str, ...]] = {
    "": ("lopen demo", "lopen init calc", "lopen run calc"),
    "init": ("lopen init calc", "lopen init --example", "lopen init --pre-commit-hook"),
    "doctor": ("lopen doctor", "lopen doctor --online"),
    "demo": ("lopen demo", "lopen demo /tmp/try-lopen"),
    "help": ("lopen help run", "lopen help budget extend"),
    "config": ("lopen config", "lopen config get models.building"),
    "config show": ("lopen config show", "lopen config show budget --explain"),
    "config get": ("lopen config get models.building", "lopen config get budget.session_tokens --json"),
    "config schema": ("lopen config schema", "lopen config schema > lopen.schema.json"),
    "config path": ("lopen config path", "lopen config path --json"),
    "config set": (
        "lopen config set budget.max_cost_usd 5",
        "lopen config set --user models.building sonnet",
        """lopen config set models.fallback '["sonnet"]'""",
    ),
    "config unset": ("lopen config unset budget.max_cost_usd", "lopen config unset --user models.building"),
    "spec": ("lopen spec calc -p 'A calculator for whole numbers'", "lopen spec calc"),
    "import": (
        "lopen import specs/001-login/",
        "lopen import '#42' --module login",
        "lopen import notes/login.md",
    ),
    "check": ("lopen check", "lopen check calc", "lopen check specs/calc/SPECIFICATION.md"),
    "run": ("lopen run calc", "lopen run calc --dry-run", "lopen run calc --detach --max-cost 5"),
    "resume": ("lopen resume", "lopen resume calc", "lopen resume calc-20260301-1 -p 'Keep it simple'"),
    "attach": ("lopen attach", "lopen attach calc"),
    "plan": ("lopen plan calc", "lopen plan calc --new"),
    "build": ("lopen build calc", "lopen build calc --max-iterations 10"),
    "approve": (
        "lopen approve calc",
        "lopen approve calc --run",
        "lopen approve calc --yes --note 'read twice'",
    ),
    "answer": ("lopen answer calc-20260301-1 'whole numbers only'", "lopen answer calc-20260301-1 yes"),
    "confirm": (
        "lopen confirm calc-20260301-1",
        "lopen confirm calc-20260301-1 --note 'try another library'",
    ),
    "pause": ("lopen pause", "lopen pause calc"),
    "skip": ("lopen skip calc-t3", "lopen skip calc-t3 --reason 'not needed any more'"),
    "revert": ("lopen revert", "lopen revert --to calc-t2", "lopen revert --undo"),
    "pr": ("lopen pr", "lopen pr calc --draft", "lopen pr --print"),
    "merge": ("lopen merge calc", "lopen merge calc --into main"),
    "modules": ("lopen modules", "lopen modules --json"),
    "status": ("lopen status", "lopen status calc", "lopen status --json"),
    "show": ("lopen show calc-t2", "lopen show call-17", "lopen show verification-3 --json"),
    "diff": ("lopen diff", "lopen diff calc-t2"),
    "log": ("lopen log", "lopen log calc -f", "lopen log -v"),
    "session": ("lopen session", "lopen session show calc-20260301-1"),
    "session list": ("lopen session list", "lopen session list --json"),
    "session show": (
        "lopen session show calc-20260301-1",
        "lopen session show calc-20260301-1 --format yaml",
    ),
    "session resume": (
        "lopen session resume calc-20260301-1",
        "lopen session resume calc-20260301-1 --max-cost 5",
    ),
    "session delete": (
        "lopen session delete calc-20260301-1",
        "lopen session delete calc-20260301-1 --yes",
    ),
    "session prune": ("lopen session prune", "lopen session prune --json"),
    "session export": (
        "lopen session export calc-20260301-1 --recording calc.jsonl",
        "lopen session export calc-20260301-1 --recording calc.jsonl --json",
    ),
    "replay": ("lopen replay calc-20260301-1", "lopen replay calc-20260301-1 --quiet"),
    "serve": ("lopen serve", "lopen serve --open", "lopen serve --port 0 --link"),
    "mcp": ("lopen mcp", "lopen mcp -C ~/src/project"),
    "diagram": ("lopen diagram", "lopen diagram > workflow.mmd"),
    "budget": ("lopen budget", "lopen budget extend --tokens 100000"),
    "budget show": ("lopen budget show", "lopen budget show session:calc-20260301-1"),
    "budget extend": (
        "lopen budget extend --tokens 100000",
        "lopen budget extend module:calc 500000 --reason 'larger than planned'",
    ),
    "budget reset": ("lopen budget reset module:calc", "lopen budget reset session:calc-20260301-1"),
    "circuit": ("lopen circuit", "lopen circuit incidents"),
    "circuit status": ("lopen circuit status", "lopen circuit status --json"),
    "circuit incidents": (
        "lopen circuit incidents",
        "lopen circuit incidents session:calc-20260301-1",
    ),
    "circuit ack": ("lopen circuit ack", "lopen circuit ack session:calc-20260301-1"),
    "circuit reset": (
        "lopen circuit reset session:calc-20260301-1",
        "lopen circuit reset session:calc-20260301-1 --json",
    ),
    "alerts": ("lopen alerts", "lopen alerts ack all"),
    "alerts list": ("lopen alerts list", "lopen alerts list --all"),
    "alerts ack": ("lopen alerts ack 3f2a9c1e", "lopen alerts ack all"),
    "memory": ("lopen memory", "lopen memory clean"),
    "memory report": ("lopen memory report", "lopen memory report --json"),
    "memory clean": ("lopen memory clean", "lopen memory clean --json"),
    "hooks": ("lopen hooks install", "lopen hooks uninstall"),
    "hooks install": ("lopen hooks install", "lopen hooks install -C ~/projects/calc"),
    "hooks uninstall": ("lopen hooks uninstall", "lopen hooks uninstall -C ~/projects/calc"),
}


def with_examples(command: Any, words: str) -> Any:
    r"""Put the examples below the help of a command and of its subcommands; return the command.

    The character `\b` keeps click from filling the lines of a paragraph.
    """
    if examples := EXAMPLES.get(words):
        command.epilog = "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)
    for name, inner in getattr(command, "commands", {}).items():
        with_examples(inner, f"{words} {name}".strip())
    return command
