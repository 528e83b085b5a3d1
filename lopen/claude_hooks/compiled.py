"""Starting a hook: the modules that each one loads, compiled in one file. Importing them one by one takes twice as long.

The file lies beside Python's own compiled files and is trusted as they are. It holds as long as each source has the
time and size that it was made of. Where it is missing or does not hold, the modules are imported one by one, and the
file is made anew if the folder can be written.

It begins with Python's mark of the code it reads and the length of a first part, which holds what every event loads.
Behind that lie the modules of `LATER`, each read when it is imported.
"""

from __future__ import annotations

import gc
import marshal
import os
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER, cache_from_source  # `importlib.util` loads more

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType
    from typing import NoReturn

    Stamp = tuple[int, int]  # time and size of a source
    Later = tuple[
        str, Stamp, int, int
    ]  # path, stamp, where the code begins behind the first part, its length

HEAD = 8  # bytes: the mark, and the length
# What many events import on their way
LATER = (
    "lopen.core.quick_sqlite",
    "lopen.claude_hooks.connection",
    "lopen.limits.sqlite_store",
    "lopen.limits.charging",
    "lopen.claude_hooks.protect",
    "lopen.claude_hooks.persons_commands",
    "lopen.claude_hooks.command_writes",
    "lopen.claude_hooks.protected_places",
    "lopen.limits.redis_store",
    "lopen.limits.wording",
)


def start(arguments: Sequence[str]) -> NoReturn:
    """Answer the event that `arguments` name; the process ends."""
    gc.disable()  # it ends before there is anything to collect
    known = _load()
    from lopen.claude_hooks.entry import run
    from lopen.core.person import use_absolute_path

    if not known:
        _keep()
    use_absolute_path(os.environ)
    run(arguments)


def _load() -> bool:
    """Load the modules from the file; False where they have to be imported one by one."""
    path = _path()
    try:
        with open(path, "rb", buffering=0) as file:
            size, head = os.fstat(file.fileno()).st_size, file.read(HEAD)
            length = int.from_bytes(head[4:], "big")
            if head[:4] != MAGIC_NUMBER or length > size:
                return False
            made_for, modules, later = marshal.loads(file.read(length))  # noqa: S302 - as an import reads a module
        behind = sum(length for _, _, _, length in later.values())
        if made_for != path or size != HEAD + length + behind or any(_stamp(m[1]) != m[2] for m in modules):
            return False
    except (OSError, EOFError, ValueError, TypeError):
        return False
    for name, source, _, code in modules:
        if name not in sys.modules:
            _run(name, source, code)
    sys.meta_path.insert(0, _LaterModules(path, HEAD + length, later))
    return True


def _run(name: str, path: str, code: CodeType) -> None:
    module = sys.modules[name] = type(sys)(name)
    module.__file__ = path
    if path.endswith("__init__.py"):
        module.__path__ = [os.path.dirname(path)]
    exec(code, module.__dict__)  # noqa: S102 - what an import does
    above, _, last = name.rpartition(".")
    if above:
        setattr(sys.modules[above], last, module)


class _LaterModules:
    """Finds and loads the modules of `LATER` (`importlib.abc.MetaPathFinder` and `Loader`)."""

    def __init__(self, path: str, begin: int, modules: dict[str, Later]) -> None:
        self._path, self._begin, self._modules = path, begin, modules

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        """Return how to load the module; None where it has to be looked for elsewhere."""
        if name not in self._modules or _stamp(self._modules[name][0]) != self._modules[name][1]:
            return None
        return ModuleSpec(name, self, origin=self._modules[name][0])  # type: ignore[arg-type] # all that a loader needs

    def create_module(self, spec: object) -> None:
        """Take Python's own kind of module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module."""
        module.__file__, _, offset, length = self._modules[module.__name__]
        with open(self._path, "rb", buffering=0) as file:
            file.seek(self._begin + offset)
            code = marshal.loads(file.read(length))  # noqa: S302 - as an import reads a module
        exec(code, module.__dict__)  # noqa: S102 - what an import does


def _keep() -> None:
    """Write the file for the next hook. Where that cannot be done, nothing is lost."""
    path = _path()
    if sys.dont_write_bytecode or not os.access(os.path.dirname(path), os.W_OK):
        return
    own = f"{path}.{os.getpid()}"
    try:
        later, codes = _later()
        first = marshal.dumps((path, _loaded(), later))
        with open(own, "wb") as file:
            file.write(MAGIC_NUMBER + len(first).to_bytes(HEAD - len(MAGIC_NUMBER), "big") + first + codes)
        os.replace(own, path)
    except (OSError, ValueError, SyntaxError):
        return


def _loaded() -> list[tuple[str, str, Stamp, CodeType]]:
    """Name, path, stamp and code of what of lopen is loaded by now, in the order in which its loading ended."""
    found = []
    for name, module in list(sys.modules.items()):  # in just that order
        if name.startswith(("lopen.", "__future__")) and (path := module.__file__):
            found.append((name, path, _stamp(path), _compiled(path)))
    return found


def _later() -> tuple[dict[str, Later], bytes]:
    """The modules of `LATER` by name, and their codes one behind the other."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    found, codes = {}, b""
    for name in LATER:
        path = os.path.join(root, *name.split(".")) + ".py"
        code = marshal.dumps(_compiled(path))
        found[name] = (path, _stamp(path), len(codes), len(code))
        codes += code
    return found, codes


def _compiled(path: str) -> CodeType:
    """The module without its docstrings and the numbers of its lines, which take a third of the room."""
    with open(path, "rb") as file:
        return _bare(compile(file.read(), path, "exec", dont_inherit=True, optimize=2))


def _bare(code: CodeType) -> CodeType:
    inner = (_bare(each) if isinstance(each, type(code)) else each for each in code.co_consts)
    return code.replace(co_linetable=b"", co_consts=tuple(inner))


def _stamp(path: str) -> Stamp:
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size


def _path() -> str:
    path: str = cache_from_source(os.path.join(os.path.dirname(__file__), "hook_modules.py"))
    return path
