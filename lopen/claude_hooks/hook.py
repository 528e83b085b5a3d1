"""The program of an installed hook: `python -I -S …/hook.py EVENT` (docs/reference/claude-code-hooks.md).

So started, Python looks for modules in its own library alone, to which this adds lopen: neither the project's folder
nor PYTHONPATH nor a `.pth` file brings any in, and starting takes less time.
"""

import sys
from os.path import abspath, dirname

if __name__ == "__main__":
    sys.path.sort(
        key=lambda folder: not folder.endswith("lib-dynload")
    )  # of Python's library most is not looked for
    sys.path.append(dirname(dirname(dirname(abspath(__file__)))))

    from lopen.claude_hooks.compiled import start

    start(sys.argv[1:])
