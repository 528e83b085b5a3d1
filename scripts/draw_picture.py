"""Draw the picture of the live view in the README: `python -m scripts.draw_picture` in the repository's root.

Builds the bundled example on a pseudo-terminal against a scripted endpoint, which holds back one answer. What the
terminal shows then becomes `docs/images/run.svg`. Times and costs differ a little from run to run.
"""

from __future__ import annotations

import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from fcntl import ioctl
from itertools import groupby
from pathlib import Path
from typing import Any

import pyte
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from lopen.application.demo_project import DemoContext, prepare
from lopen.cli.commands.demo import best_sandbox
from lopen.example import MODULE
from scripts.record_example import Author
from tests.fake_api import Answer, MessagesEndpoint

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "images" / "run.svg"
COLUMNS, ROWS = 116, 26
HELD_REQUEST = 19
"""The request that is not answered: the judge refused the example's fifth task, and is asked once more."""
LIMIT_S = 120
NAMES = {name: name for name in ("black", "red", "green", "blue", "magenta", "cyan", "white")}
NAMES |= (
    {"brown": "yellow"}
    | {f"bright{name}": f"bright_{name}" for name in NAMES}
    | {"brightbrown": "bright_yellow"}
)


class HoldingAuthor(Author):
    """Answers as the example's model does, up to the request that it holds until `released`."""

    def __init__(self) -> None:
        super().__init__()
        self.held, self.released = threading.Event(), threading.Event()
        self._count = 0

    def __call__(self, body: dict[str, Any]) -> Answer:
        self._count += 1
        if self._count == HELD_REQUEST:
            self.held.set()
            self.released.wait(LIMIT_S)
        return super().__call__(body)


def screen_of_a_run(folder: Path) -> pyte.Screen:
    """Build the example in the folder until the held request; return the terminal's screen."""
    author = HoldingAuthor()
    prepare(DemoContext(folder))
    screen = pyte.Screen(COLUMNS, ROWS)
    mine, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    with MessagesEndpoint(author) as endpoint:
        surroundings = {
            "ANTHROPIC_BASE_URL": endpoint.url,
            "ANTHROPIC_API_KEY": "unused",
            "TERM": "xterm-256color",
        }
        command = [sys.executable, "-m", "lopen", "run", MODULE, "--sandbox", best_sandbox()[0]]
        with subprocess.Popen(
            command, cwd=folder, env=os.environ | surroundings, stdin=theirs, stdout=theirs, stderr=theirs
        ) as process:
            os.close(theirs)
            try:
                _show(mine, pyte.ByteStream(screen), author)
            finally:
                process.kill()
                author.released.set()
    os.close(mine)
    return screen


def _show(terminal: int, stream: pyte.ByteStream, author: HoldingAuthor) -> None:
    """Feed what the terminal is sent to the screen, until two seconds after the held request came."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        if author.held.is_set():
            end = min(end, time.monotonic() + 2)
            author.held.clear()
        if select.select([terminal], [], [], 0.1)[0]:
            stream.feed(os.read(terminal, 65_536))


def drawn(screen: pyte.Screen) -> str:
    """Return the screen as SVG that loads no font from elsewhere."""
    lines = [_line(screen, row) for row in range(screen.lines)]
    while lines and not lines[-1].plain.strip():
        lines.pop()
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=screen.columns, file=nowhere, force_terminal=True)
        for line in lines:
            console.print(line, no_wrap=True, crop=True)
        before, _, rest = CONSOLE_SVG_FORMAT.partition("@font-face")
        _, _, after = rest.rpartition("@font-face")
        local_fonts = before + after[after.index("}}") + 2 :]
        return console.export_svg(
            title="lopen run tariff", theme=DIMMED_MONOKAI, code_format=local_fonts, unique_id="lopen"
        )


def _line(screen: pyte.Screen, row: int) -> Text:
    cells = [screen.buffer[row][column] for column in range(screen.columns)]
    text = Text()
    for (colour, bold, italic), same in groupby(cells, key=lambda cell: (cell.fg, cell.bold, cell.italics)):
        style = Style(color=_colour(colour), bold=bold, italic=italic)
        text.append("".join(cell.data for cell in same), style)
    text.rstrip()
    return text


def _colour(name: str) -> str | None:
    """Return pyte's colour, a name or six hexadecimal digits, as Rich calls it."""
    if name == "default":
        return None
    if name in NAMES:
        return NAMES[name]
    return f"#{name}"


def main() -> int:
    """Build, draw and write the picture."""
    with tempfile.TemporaryDirectory(prefix="lopen-picture-") as folder:
        root = Path(folder).resolve() / "kilowatt"
        root.mkdir()
        screen = screen_of_a_run(root)
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(drawn(screen), "utf-8")
    sys.stdout.write("\n".join(screen.display) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
