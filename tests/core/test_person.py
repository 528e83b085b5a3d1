"""The person's folders are those of platformdirs, with the standard library alone."""

from __future__ import annotations

import pwd
import sys
from pathlib import Path

import pytest
from platformdirs.macos import MacOS
from platformdirs.unix import Unix

from lopen.core.errors import LopenError
from lopen.core.person import cache_folder, config_folder, data_folder, required

VALUES = (None, "relative", "/absolute")


@pytest.mark.parametrize("home", VALUES)
@pytest.mark.parametrize("named", VALUES)
@pytest.mark.parametrize(("system", "library"), [("linux", Unix), ("darwin", MacOS)])
def test_they_are_those_of_platformdirs(
    monkeypatch: pytest.MonkeyPatch,
    system: str,
    library: type[Unix | MacOS],
    named: str | None,
    home: str | None,
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    folders = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
    for variable, value in (("HOME", home), *((folder, named) for folder in folders)):
        if value is None:
            monkeypatch.delenv(variable, raising=False)
        else:
            monkeypatch.setenv(variable, value)
    expected = library("lopen", appauthor=False)
    assert (Path(data_folder()), Path(config_folder()), Path(cache_folder())) == (
        expected.user_data_path,
        expected.user_config_path,
        expected.user_cache_path,
    )
    assert Path(data_folder()).is_absolute()


def test_no_home_folder_is_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody: dict[int, pwd.struct_passwd] = {}
    monkeypatch.setattr(pwd, "getpwuid", nobody.__getitem__)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", "relative")
    assert (data_folder(), config_folder({})) == ("", "")
    with pytest.raises(LopenError, match="home folder is not known"):
        required(data_folder())
