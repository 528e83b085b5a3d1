"""Write docs/reference/configuration.md from the schema: python -m scripts.write_configuration_reference"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

from lopen.cli.commands.config import WHO, default_text
from lopen.settings.keys import Key, keys
from lopen.settings.schema import Settings
from lopen.settings.sources import SHORT_VARIABLES

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "configuration.md"
TYPES = {"bool": "boolean", "int": "integer", "float": "number", "str": "string"}
INTRODUCTION = """\
<!-- Written by scripts/write_configuration_reference.py from the schema. Edit lopen/settings/schema.py, then run it. -->

# Configuration

lopen reads its settings from five sources. A source further up wins over those below it:

1. options on the command line
2. environment variables
3. the project's file, `.lopen/config.toml`
4. your own file, `config.toml` in the configuration folder of your platform (`~/.config/lopen/` on Linux)
5. the defaults below

Both files are TOML. `lopen config show` prints where they are and every value with the source
it came from, and `lopen config set KEY VALUE` changes the project's file (`--user` changes your own). No `.env` file is
read. An unknown key or a value that is not allowed ends the command with exit code 2 and a message that names the file,
the line, and the nearest known key.

```toml
# .lopen/config.toml
[budget]
session_tokens = 300_000
```

## Who may set a key

A project's file comes with the repository, so lopen does not trust it with everything. In the tables below,
"Who may set it" is one of:

| Who | Meaning |
|---|---|
| you or the project | Any source may set it. |
| you; the project may lower it | A project may set a stricter limit than yours. It may not loosen a limit or switch it off. |
| you; the project may switch it on | A project may switch a protection on. It may not switch it off. |
| you; the project, once you confirm | A project may name a model. lopen asks you once before it uses that model. |
| you | Only your own file, an environment variable or an option may set it. |

## Environment variables

Each key has a variable: `LOPEN_`, then the key in upper case with `__` for each dot. `budget.session_tokens` is
`LOPEN_BUDGET__SESSION_TOKENS`. Lists are written as JSON. These shorter variables work too; where both are set, the
`LOPEN_` variable wins:
"""


def page() -> str:
    """Return the whole page."""
    lines = [INTRODUCTION, "| Variable | Key |", "|---|---|"]
    lines += [f"| `{variable}` | `{key}` |" for variable, key in SHORT_VARIABLES.items()]
    for section, field in Settings.model_fields.items():
        of_section = [key for key in keys().values() if key.name.startswith(f"{section}.")]
        title = (field.annotation.__doc__ or "").splitlines()[0] if field.annotation else ""
        lines += ["", f"## {section}", "", title, "", *_table(of_section)]
    return "\n".join(lines) + "\n"


def _table(of_section: list[Key]) -> Iterator[str]:
    yield "| Key | Type | Default | Allowed values | Who may set it | Meaning |"
    yield "|---|---|---|---|---|---|"
    for key in of_section:
        cells = [
            f"`{key.name}`",
            _type(key.field.annotation),
            default_text(key),
            key.allowed(),
            WHO[key.trust.rule],
            key.meaning,
        ]
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _type(annotation: Any) -> str:
    """Return the type as TOML calls it; an optional one is the type that can be written down."""
    if get_origin(annotation) is dict:
        return "table"
    if get_origin(annotation) is list:
        return f"list of {_type(get_args(annotation)[0])}s"
    options = [t for t in get_args(annotation) if t is not type(None)]
    if options:
        return _type(options[0] if isinstance(options[0], type) or get_args(options[0]) else type(options[0]))
    return TYPES[annotation.__name__]


def main() -> None:
    """Write the page."""
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
