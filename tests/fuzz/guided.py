"""The same readers, fuzzed for a fixed time by inputs that lead to code not reached before (atheris, libFuzzer).

    python -m tests.fuzz.guided TARGET SECONDS

An input that breaks one is printed; it becomes an `@example` of the property test that holds the same reader.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["lopen"]):
    from tests.fuzz.test_documents import WHOLE, looked_at
    from tests.fuzz.test_files import (
        CONFIG,
        EVENT,
        RECORDING,
        configured_or_refused,
        loaded_or_refused,
        parsed_or_malformed,
    )
    from tests.fuzz.test_model import NAMES, called_or_answered

LONGEST_INPUT = 4_000
LONGEST_RUN_S = 30  # of one input: whatever takes longer hangs
MOST_MEMORY_MB = 2_000


def targets(folder: Path) -> dict[str, tuple[Callable[[bytes], object], bytes]]:
    """What reads the bytes, and an input in which everything is sound."""
    call = json.dumps({"name": NAMES[0], "input": {"path": "x"}}).encode()
    return {
        "specification": (lambda data: looked_at(data.decode("utf-8", "replace")), WHOLE.encode()),
        "tool-input": (called_or_answered, call),
        "recording": (
            lambda data: loaded_or_refused(folder / "r.jsonl.gz", gzip.compress(data, 1)),
            gzip.decompress(RECORDING),
        ),
        "hook-event": (lambda data: parsed_or_malformed(data, "post-tool-use"), json.dumps(EVENT).encode()),
        "configuration": (
            lambda data: configured_or_refused(folder, data.decode("utf-8", "replace")),
            CONFIG.encode(),
        ),
    }


def main(target: str, seconds: int) -> None:
    """Does not return: libFuzzer ends the process, 0 where nothing was found."""
    folder = Path(tempfile.mkdtemp(prefix="lopen-fuzz-"))
    read, sound = targets(folder)[target]
    corpus = folder / "corpus"
    corpus.mkdir()
    (corpus / "sound").write_bytes(sound)
    limits = [
        f"-max_total_time={seconds}",
        f"-max_len={LONGEST_INPUT}",
        f"-timeout={LONGEST_RUN_S}",
        f"-rss_limit_mb={MOST_MEMORY_MB}",
    ]
    atheris.Setup([sys.argv[0], "-seed=1", f"-artifact_prefix={folder}/", *limits, str(corpus)], read)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
