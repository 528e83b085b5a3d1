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
    here = dirname(abspath(__file__))
    sys.path.append(here)
    from compiled import start  # type: ignore[import-not-found] # which loads lopen's packages more quickly

    sys.path[-1] = dirname(dirname(here))
    start(sys.argv[1:])
