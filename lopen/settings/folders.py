"""The person's own folders on this platform. The only importer of `platformdirs`.

`lopen.base.user_folders` names the same places without a library, for the hooks.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lopen.base.errors import LopenError


def config_folder() -> Path:
    """Return the folder of the person's configuration (`XDG_CONFIG_HOME` counts)."""
    from platformdirs import user_config_path

    return _found(user_config_path)


def cache_folder() -> Path:
    """Return the folder of what can be made again, outside every repository (`XDG_CACHE_HOME` counts)."""
    from platformdirs import user_cache_path

    return _found(user_cache_path)


def data_folder() -> Path:
    """Return the folder of what lopen remembers for the person, outside every repository (`XDG_DATA_HOME` counts)."""
    from platformdirs import user_data_path

    return _found(user_data_path)


def _found(find: Callable[..., Path]) -> Path:
    try:
        return find("lopen", appauthor=False)
    except RuntimeError as error:  # neither HOME nor the user database names a home folder
        raise LopenError(str(error), hint="set HOME to the absolute path of your home folder") from error
