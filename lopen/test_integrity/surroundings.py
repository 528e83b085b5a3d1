"""Lines of code that ask about the process or the machine, by which code can tell the clean room from other places.

A question of which many programs need the answer (the process id, the current folder) counts where the line compares it
with what stands in the code itself.
"""

from __future__ import annotations

import re

_QUOTE = r"[\"'`]"
_LITERAL = r"[\"'`][^\"'`\s][^\"'`]*[\"'`]"
_LOOKS = r"\b(?:exists(?:Sync)?|stat(?:Sync)?|access(?:Sync)?|isdir|isfile|is_dir|Stat|Path(?:\.new)?)"
_LISTS = r"\b(?:listdir|scandir|readdir(?:Sync)?|ReadDir|read_dir|glob|Path)"
_ASKS = "|".join(
    (
        # A process may well look at its memory, its open files and its program
        r"(?:[\"'=<(]|\(\s*`)\s*/proc/(?:(?:self|thread-self|1)(?!/(?:exe|fd|io|s?maps\w*|smaps\w*|statm))|mounts|net|keys)\b",
        r"^[^#]*\b(?:cat|grep|head|awk|sed|ls)\s[^#]*/proc/(?:self|1|mounts|net|keys)\b",
        r"/proc/.{0,20}\bget_?p?pid\(",
        rf"{_LISTS}\(\s*{_QUOTE}/(?:proc|dev)/?(?:\*[^\"'`/]*)?{_QUOTE}",
        rf"{_LOOKS}\(\s*{_QUOTE}/(?:var(?:/(?:log|lib|spool|cache))?|boot|root|home|mnt|srv)/?{_QUOTE}",
        rf"{_QUOTE}(?:/etc/(?:shadow|machine-id|hostname)|/\.dockerenv|/run/\.containerenv){_QUOTE}",
        r"\bNoNewPrivs\b|\bCap(?:Eff|Bnd|Prm)\b|\bPR_GET_(?:NO_NEW_PRIVS|SECCOMP)\b",
        r"(?i:\b(?:p|getr|p?rlimit_getr|get_r)limit(?:64)?\((?!.{0,60}(?:NOFILE|STACK)))",
        r"\.ismount\(|\.is_mount\(\)|\b(?:site|user)customize\b",
        r"\bif_nameindex\(|\bnet_if_addrs\(|\bnet\.Interfaces\(|/sys/class/net\b|\bkeys\(\s*(?:\w+\.)?networkInterfaces\(",
    )
)
_PID = (
    r"os\.getp?pid\(\)|process\.p?pid\b|os\.Getp?pid\(\)|process::id\(\)|\bProcess\.p?pid\b|\bgetmypid\(\)"
    r"|\bProcessHandle\.current\(\)\.pid\(\)"
)
_NAMES = r"[\"'](?:HOME|PWD|HOSTNAME|TMPDIR)[\"']"
_PLACE = (
    r"os\.getcwdb?\(\)|\bPath\.cwd\(\)|process\.cwd\(\)|os\.Getwd\(\)|\bcurrent_dir\(\)"
    r"|\bexpanduser\(\s*[\"']~/?[\"']\s*\)|\bPath\.home\(\)|\bhomedir\(\)|os\.UserHomeDir\(\)"
    r"|\bgethostname\(\)|platform\.node\(\)|os\.[hH]ostname\(\)|process\.env\.(?:HOME|PWD|HOSTNAME|TMPDIR)\b"
    rf"|environ(?:\.get\(|\[)\s*{_NAMES}[^()\[\]]*[)\]]|os\.[gG]etenv\(\s*{_NAMES}[^()]*\)"
)
_PART = r"[\w.)\s\[\]?-]{0,30}?"  # of the answer, or a conversion
_HOLDS = r"\.(?:starts_?with|ends_?with|startsWith|endsWith|includes|contains|match)\("
# What is asked → the comparison
_COMPARED = {
    _PID: rf"(?:ASKED){_PART}(?:[%&]\s*\w+\)?\s*)?(?:[<>]=?|[!=]==?)\s*[1-9]"
    r"|\b[1-9]\d*\s*(?:[<>]=?|[!=]==?)\s*(?:ASKED)",
    _PLACE: rf"(?:ASKED){_PART}(?:[!=]==?\s*{_LITERAL}|{_HOLDS}\s*[(\[]?{_LITERAL})"
    rf"|{_LITERAL}\s*(?:[!=]==?|\bin\b|\bnot in\b)\s*(?:str\(|[\w.]*basename\()?(?:\w+\.)*(?:ASKED)"
    rf"|\b(?:HasSuffix|HasPrefix|Contains|basename|Base)\(\s*(?:\w+\.)*(?:ASKED)\)?\s*(?:,|[!=]==?)\s*{_LITERAL}",
}


def asking_pattern(text: str) -> re.Pattern[str]:
    """Return the pattern of such lines in `text`, where an answer may have got a name."""
    patterns = [_ASKS]
    for question, compared in _COMPARED.items():
        if re.search(question, text):
            given = rf"(?m)\b(\w+)(?:, *\w+)? *:?= *(?:str\()?(?:\w+\.)*(?:{question})\)?;?$"
            names = sorted(set(re.findall(given, text)))[:20]
            asked = "|".join((question, *(rf"(?<![\w.]){name}\b" for name in names)))
            patterns.append(compared.replace("ASKED", asked))
    return re.compile("|".join(patterns))
