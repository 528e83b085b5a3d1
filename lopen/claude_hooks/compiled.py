"""Starting a hook: the modules that each one loads, compiled in one file. Importing them one by one takes twice as long.

The file lies beside Python's own compiled files and is trusted as they are. It holds as long as each source has the
time and size that it was made of. Where it is missing or does not hold, the modules are imported one by one, and the
file is made anew if the folder can be written.
"""

import gc
import marshal
import os
import sys
from _frozen_importlib_external import MAGIC_NUMBER, cache_from_source  # `importlib.util` loads more

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType
    from typing import Any, NoReturn

    # name, path, time and size of the source, code; in the order in which they were loaded
    Compiled = list[tuple[str, str, tuple[int, int], CodeType]]


def start(arguments: "Sequence[str]") -> "NoReturn":
    """Answer the event that `arguments` name; the process ends."""
    gc.disable()  # it ends before there is anything to collect
    known = _load()
    from lopen.base.person import use_absolute_path
    from lopen.claude_hooks.entry import run

    if not known:
        _keep()
    use_absolute_path(os.environ)
    run(arguments)


def _load() -> bool:
    """Load the modules from the file; False where they have to be imported one by one."""
    try:
        with open(_path(), "rb") as file:
            magic, modules = marshal.loads(file.read())  # noqa: S302 - as an import reads a module
        if magic != MAGIC_NUMBER or any(_stamp(path) != stamp for _, path, stamp, _ in modules):
            return False
    except (OSError, EOFError, ValueError, TypeError):
        return False
    for name, path, _, code in modules:
        if name not in sys.modules:
            _run(name, path, code)
    return True


def _run(name: str, path: str, code: "CodeType") -> None:
    module = sys.modules[name] = type(sys)(name)
    module.__file__ = path
    if path.endswith("__init__.py"):
        module.__path__ = [os.path.dirname(path)]
    exec(code, module.__dict__)  # noqa: S102 - what an import does
    above, _, last = name.rpartition(".")
    if above:
        setattr(sys.modules[above], last, module)


def _keep() -> None:
    """Write the file for the next hook: what of lopen is loaded by now. Where that cannot be done, nothing is lost."""
    path = _path()
    if sys.dont_write_bytecode or not os.access(os.path.dirname(path), os.W_OK):
        return
    own = f"{path}.{os.getpid()}"
    try:
        with open(own, "wb") as file:
            file.write(marshal.dumps((MAGIC_NUMBER, _loaded())))
        os.replace(own, path)
    except (OSError, ImportError, ValueError):
        return


def _loaded() -> "Compiled":
    """The modules in the order in which their loading ended, which is `sys.modules`' own."""
    found = []
    for name, module in list(sys.modules.items()):
        if name.startswith(("lopen.", "__future__")) and (path := module.__file__):
            loader: Any = module.__loader__
            found.append((name, path, _stamp(path), loader.get_code(name)))
    return found


def _stamp(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size


def _path() -> str:
    path: str = cache_from_source(os.path.join(os.path.dirname(__file__), "hook_modules.py"))
    return path
