"""What the room loads."""

from __future__ import annotations

import subprocess
import sys


def test_importing_the_room_loads_no_parser() -> None:
    code = (
        "import sys, lopen.storage.project_documents, lopen.documents.drift, lopen.documents.plan_file\n"
        "print(sorted({'markdown_it', 'mdit_py_plugins', 'yaml'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
