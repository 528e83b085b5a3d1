"""When two calls are the same call: tool and arguments after whitespace and path normalisation.

What only words or times a call is no part of it. The signature is a
hash, so that no argument lies in the store.
"""

from __future__ import annotations

from posixpath import normpath

from lopen.base.hashing import blake2b
from lopen.base.quick_stdlib import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LONGEST_PATH = 4_096
# Of a call that runs a command: how it is worded, how long it may take, where it waits
_COMMAND_SAYS = frozenset({"description", "timeout", "timeout_s", "run_in_background"})
_AGENT_SAYS = frozenset({"description"})  # a sub-agent's title beside its prompt


def signature(tool: str, arguments: Any) -> str:
    """`tool` and 16 hex digits over its normalised arguments."""
    text = dumps(_normal(_effective(arguments), 0), sort_keys=True, ensure_ascii=False, default=str)
    return f"{tool}:{blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def _effective(arguments: Any) -> Any:
    """The arguments that change what the call does. Elsewhere a `description` may be what is written."""
    if not isinstance(arguments, dict):
        return arguments
    idle = _COMMAND_SAYS if "command" in arguments else _AGENT_SAYS if "prompt" in arguments else frozenset()
    return {name: value for name, value in arguments.items() if name not in idle} if idle else arguments


def _normal(value: Any, depth: int) -> Any:
    if depth > 50:  # hostile nesting; what lies deeper counts as equal
        return None
    if isinstance(value, str):
        return _normal_text(value)
    if isinstance(value, dict):
        return {str(k): _normal(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_normal(v, depth + 1) for v in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _normal_text(text: str) -> str:
    """Runs of blanks as one, outer blanks gone, every word that is a path in its shortest form."""
    words = text.split()
    if len(words) > 64 or len(text) > LONGEST_PATH:  # a file's content: blanks only
        return " ".join(words)
    return " ".join(_normal_path(word) if "/" in word and "://" not in word else word for word in words)


def _normal_path(word: str) -> str:
    path = normpath(word)
    return path[1:] if path.startswith("//") else path
