"""The person's own folders on this platform. The only importer of `platformdirs`."""

from __future__ import annotations

from pathlib import Path


def config_folder() -> Path:
    """Where the person's configuration lies (`XDG_CONFIG_HOME` counts)."""
    from platformdirs import user_config_path

    return user_config_path("lopen", appauthor=False)


def cache_folder() -> Path:
    """Where what can be made again lies, outside every repository (`XDG_CACHE_HOME` counts)."""
    from platformdirs import user_cache_path

    return user_cache_path("lopen", appauthor=False)


def data_folder() -> Path:
    """Where what lopen remembers for the person lies, outside every repository (`XDG_DATA_HOME` counts)."""
    from platformdirs import user_data_path

    return user_data_path("lopen", appauthor=False)
