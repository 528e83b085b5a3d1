"""A shell text as the simple commands in it: words, redirect targets, what is fed to them, nested texts.

It reads what people and models write, not all that a shell can: enough that quoting, chains, substitutions
and here-documents hide nothing. What it cannot read (a variable as the command) stays visible as `$NAME`.
"""

from __future__ import annotations

from lopen.limits.value import Value

DEEPEST = 8
_RESERVED = "if then else elif fi while until do done for case esac in function select { } ! time coproc"
_KEYWORDS = frozenset(_RESERVED.split())
_BREAKS = ";|&()\n"


class Command(Value):
    """One simple command. `fed`: text on its standard input; `piped`: it reads the one before it."""

    words: tuple[str, ...]
    writes: tuple[str, ...] = ()
    fed: str = ""
    piped: bool = False


def commands(text: str, depth: int = 0) -> list[Command]:
    """Every simple command of `text`, those of its substitutions first."""
    if depth > DEEPEST:
        return []
    return _Reader(text, depth).read()


class _Reader:
    """One pass over the text."""

    def __init__(self, text: str, depth: int) -> None:
        self.text = text
        self.depth = depth
        self.at = 0
        self.found: list[Command] = []
        self.words: list[str] = []
        self.writes: list[str] = []
        self.fed = ""
        self.word: list[str] | None = None
        self.goes_to = ""  # what the next word is: "" an argument, "write", "skip", "heredoc", "fed"
        self.heredocs: list[tuple[str, int]] = []  # what ends it; which command it feeds, -1 the present one
        self.piped = False

    def read(self) -> list[Command]:
        while self.at < len(self.text):
            self._step(self.text[self.at])
        self._end_command()
        return self.found

    def _step(self, c: str) -> None:
        if c in " \t\r":
            self._end_word()
            self.at += 1
        elif c == "#" and self.word is None:
            self.at = self._find("\n", self.at)
        elif c == "\\":
            if self.text[self.at + 1 : self.at + 2] != "\n":
                self._add(self.text[self.at + 1 : self.at + 2])
            self.at += 2
        elif c == "'":
            end = self._find("'", self.at + 1)
            self._add(self.text[self.at + 1 : end])
            self.at = end + 1
        elif c == '"':
            self._double_quoted()
        elif c in "$`":
            self._dollar(c)
        elif c in "<>":
            self._redirect(c)
        elif c in _BREAKS:
            self._break(c)
        else:
            self._add(c)
            self.at += 1

    def _find(self, what: str, start: int) -> int:
        end = self.text.find(what, start)
        return len(self.text) if end < 0 else end

    def _add(self, text: str) -> None:
        if self.word is None:
            self.word = []
        self.word.append(text)

    def _end_word(self) -> None:
        if self.word is None:
            return
        word, goes_to = "".join(self.word), self.goes_to
        self.word, self.goes_to = None, ""
        if goes_to == "write":
            self.writes.append(word)
        elif goes_to == "heredoc":
            self.heredocs.append((word, -1))
        elif goes_to == "fed":
            self.fed += word
        elif goes_to != "skip" and (self.words or word not in _KEYWORDS):
            self.words.append(word)

    def _end_command(self, *, pipe: bool = False) -> None:
        self._end_word()
        if self.words or self.writes:
            self.found.append(Command(tuple(self.words), tuple(self.writes), self.fed, self.piped))
            last = len(self.found) - 1
            self.heredocs = [(end, last if fed < 0 else fed) for end, fed in self.heredocs]
        self.words, self.writes, self.fed, self.piped = [], [], "", pipe

    def _break(self, c: str) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if c == "&" and following == ">":  # &> file
            self.at += 1
            self._redirect(">")
            return
        self._end_word()  # it may be the word that ends a here-document
        if c == "\n" and self.heredocs:
            self.at += 1
            self._here_documents()
        else:
            self.at += 1
        self._end_command(pipe=c == "|" and following != "|")
        if following == c and c in "|&":
            self.at += 1

    def _here_documents(self) -> None:
        for delimiter, fed in self.heredocs:
            body = []
            while self.at < len(self.text):
                end = self._find("\n", self.at)
                line, self.at = self.text[self.at : end], end + 1
                if line.strip() == delimiter:
                    break
                body.append(line)
            text = "\n".join(body) + "\n"
            if fed < 0:
                self.fed += text
            else:
                self.found[fed] = self.found[fed].replace(fed=self.found[fed].fed + text)
        self.heredocs = []

    def _redirect(self, c: str) -> None:
        if self.word is not None and "".join(self.word).isdigit():
            self.word = None  # the number of a file, 2>
        self._end_word()
        rest = self.text[self.at : self.at + 3]
        if rest[1:2] == "(":  # <( and >( run commands
            self.at += 1
            self._substitution(")")
            return
        if rest == "<<<":
            self.goes_to, self.at = "fed", self.at + 3
        elif rest[:2] == "<<":
            self.goes_to, self.at = "heredoc", self.at + (3 if rest == "<<-" else 2)
        elif rest[:2] in (">&", "<&"):
            self.goes_to, self.at = "write" if c == ">" else "skip", self.at + 2
        else:
            self.goes_to = "write" if c == ">" or rest[:2] == "<>" else "skip"
            self.at += 2 if rest[:2] in (">>", ">|", "<>") else 1

    def _double_quoted(self) -> None:
        self._add("")
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] != '"':
            c = self.text[self.at]
            if c == "\\" and self.text[self.at + 1 : self.at + 2] in tuple('"\\$`\n'):
                self._add(self.text[self.at + 1])
                self.at += 2
            elif c in "$`":
                self._dollar(c, quoted=True)
            else:
                self._add(c)
                self.at += 1
        self.at += 1

    def _dollar(self, c: str, *, quoted: bool = False) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if c == "`":
            self._add("$`")
            self._substitution("`")
        elif following == "(":
            self._add("$(")
            self.at += 1
            self._substitution(")")
        elif following == "'" and not quoted:
            end = self._find("'", self.at + 2)
            self._add(_unescaped(self.text[self.at + 2 : end]))
            self.at = end + 1
        else:
            self._add(c)
            self.at += 1

    def _substitution(self, closing: str) -> None:
        """Read the commands inside; `at` stands on the opening character and ends behind the closing one."""
        start = self.at + 1
        end = self._closing(start) if closing == ")" else self._find("`", start)
        self.found += commands(self.text[start:end], self.depth + 1)
        self.at = end + 1

    def _closing(self, at: int) -> int:
        """Where the parenthesis opened before `at` closes, quotes and nesting read over."""
        depth, quote = 1, ""
        while at < len(self.text):
            c = self.text[at]
            if c == "\\" and quote != "'":
                at += 1
            elif quote:
                quote = "" if c == quote else quote
            elif c in "'\"":
                quote = c
            elif c in "()":
                depth += 1 if c == "(" else -1
                if not depth:
                    return at
            at += 1
        return at


def _unescaped(text: str) -> str:
    try:
        return text.encode("latin-1", "backslashreplace").decode("unicode_escape")
    except ValueError:
        return text
