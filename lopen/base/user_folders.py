"""The person's own folders, found with the standard library alone: the hooks need them and load no library.

The rule is that of `platformdirs`. A relative path in an XDG variable or in
HOME does not count (XDG Base Directory Specification): it would name a folder inside the project.
"""

from __future__ import annotations

import os
import sys

from lopen.base.errors import LopenError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping
    from pathlib import Path

_MAC = "Library/Application Support"


def data_folder(environ: Mapping[str, str] = os.environ) -> str:
    """Return the folder that holds what is this person's alone; "" where no home folder is known."""
    return _folder(environ, "XDG_DATA_HOME", ".local/share")


def config_folder(environ: Mapping[str, str] = os.environ) -> str:
    """Return the folder of the person's configuration; "" where no home folder is known."""
    return _folder(environ, "XDG_CONFIG_HOME", ".config")


def cache_folder(environ: Mapping[str, str] = os.environ) -> str:
    """Return the folder of what can be made again; "" where no home folder is known."""
    return _folder(environ, "XDG_CACHE_HOME", ".cache", "Library/Caches")


def required(folder: str) -> Path:
    """Return the folder as a path. Raise `LopenError` where no home folder is known."""
    from pathlib import Path  # the hooks do without

    if not folder:
        raise LopenError("your home folder is not known", hint="set HOME to its absolute path")
    return Path(folder)


def use_absolute_path(environ: MutableMapping[str, str]) -> None:
    """Take empty and relative entries out of PATH, so that no program is ever looked up in the current folder."""
    if "PATH" in environ:
        kept = (entry for entry in environ["PATH"].split(os.pathsep) if os.path.isabs(entry))
        environ["PATH"] = os.pathsep.join(kept) or os.defpath


def _folder(environ: Mapping[str, str], variable: str, below_home: str, on_mac: str = _MAC) -> str:
    base = environ.get(variable, "")
    if os.path.isabs(base):
        return os.path.join(base, "lopen")
    home = _home(environ)
    return os.path.join(home, on_mac if sys.platform == "darwin" else below_home, "lopen") if home else ""


def _home(environ: Mapping[str, str]) -> str:
    """Return HOME, else the home folder of the user database; "" where neither is an absolute path."""
    home = environ.get("HOME", "")
    if not os.path.isabs(home):
        import pwd  # only where HOME does not say

        try:
            home = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            return ""
    return home if os.path.isabs(home) else ""
