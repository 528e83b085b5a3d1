"""Markdown documents made to confuse a reader of sections."""

from __future__ import annotations

from hypothesis import strategies as st

_FRAGMENTS = [
    *("", "", "", "   ", "\t", "text", "a `code` *em* __strong__", "ends in two blanks  ", "a\\", "é", "\u2028"),
    *("# H", "## H2 ##", "####### seven", "#none", "#", "# #", "##  # #", "#\t", "## a \\#", "### `c` *d* [l](u) ![i](s)"),
    *("===", "---", "--", "-", "=", "- - -", "***", "* * *", "_ _ _", "...", "name: x"),
    *("```", "````", "``` ", "``` a`b", "```py", "~~~", "~~~ py", "`", "``` `"),
    *("<div>", "</div>", "<!--", "-->", "<!-- x -->", "<script>", "</script>", "<b>", "<?php", "?>", "<![CDATA["),
    *("[a]: /u", "[a]: /u 'ti", "tle'", "[a]:", "/u", "[a\n]: /u", "## [a] b", "[x] tick", "[b]"),
    *("    code", "\tcode", "1986. year", "| a | b |", "\x0bv", "\x0c", "\0", "\x85", "\u00a0"),
]  # fmt: skip
_PREFIXES = ["", "", "", *("- ", "* ", "+   ", "-\t", "1. ", "2) ", "- [ ] ", "> ", ">", " ", "    ", "\t")]

lines = st.builds(
    "{}{}".format, st.lists(st.sampled_from(_PREFIXES), max_size=3).map("".join), st.sampled_from(_FRAGMENTS)
)
line_ends = st.sampled_from(["\n", "\n", "\r\n", "\r"])


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Lines of all constructs, mixed, sometimes with a byte order mark, front matter or no end to the last line."""
    some = draw(st.lists(lines, max_size=24))
    end = draw(st.one_of(st.none(), line_ends))
    text = "".join(line + (end or draw(line_ends)) for line in some)
    head = draw(st.sampled_from(["", "", "", "---\nname: n\n---\n"]))
    return head + (text if draw(st.booleans()) else text.rstrip("\r\n"))


anything = st.one_of(documents(), st.text(), st.text(alphabet="#`~ \t\r\n>-=[]x<\0\ufeff\u2028a"))
