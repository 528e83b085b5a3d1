"""What loading the SDK leaves behind in a process."""

from __future__ import annotations

import subprocess
import sys

LOOK = """
import gc, sys
from lopen.base.clock import SystemClock
from lopen.llm.anthropic_model import AnthropicModel
from lopen.settings.schema import Model

assert "anthropic" not in sys.modules
model = AnthropicModel(Model(), {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}, SystemClock(), api_key="none")
model.connect()
print("anthropic" in sys.modules, gc.isenabled(), gc.get_freeze_count() > 100_000)
"""


def test_garbage_is_looked_for_again_but_not_in_what_the_sdk_made() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOK], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.stdout.split() == ["True", "True", "True"], done.stderr
