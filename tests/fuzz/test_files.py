"""Files and messages of others: recordings, hook events, transcripts, configuration, what locks and keys say."""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from lopen.claude_hooks import transcript
from lopen.claude_hooks.event import Malformed
from lopen.claude_hooks.event import parse as parse_event
from lopen.core.errors import LopenError
from lopen.models.messages import Usage
from lopen.models.recording import (
    RecordedExchange,
    RecordedResponse,
    UnreadableRecording,
    header_line,
    load,
    member,
)
from lopen.sandbox.known_secrets import KnownSecrets
from lopen.settings import toml
from lopen.settings.keys import keys
from lopen.settings.sources import load as load_settings
from lopen.settings.toml import with_value
from lopen.store.folder import lock_holder
from tests.fuzz.inputs import (
    JSON_VALUES,
    READABLE,
    as_json,
    bounded,
    damaged,
    pieces,
    told,
)

EXCHANGE = RecordedExchange(
    1,
    "turn",
    "iterate_through_tasks",
    "m",
    ("run",),
    (),
    0,
    "o",
    response=RecordedResponse(({"type": "text", "text": "x"},), "end_turn", Usage()),
)
LINES: list[dict[str, Any]] = [header_line("calc", "2026-01-01"), asdict(EXCHANGE)]
RECORDING = b"".join(map(member, LINES))
EVENTS = ("pre-tool-use", "post-tool-use", "session-start", "stop", "user-prompt-submit")
EVENT = {
    "session_id": "s-1",
    "tool_name": "Bash",
    "tool_input": {"command": "ls"},
    "tool_use_id": "t",
    "transcript_path": "/x",
    "tool_response": {"usage": {"input_tokens": 1, "output_tokens": 2}, "model": "m"},
}
CONFIG = "[budget]\nsession_tokens = 5 # five\n\n[models]\nfallback = [\n  'a', # b\n]\n\n[circuit.rapid_fire]\nthreshold = 3\n"


@given(damaged([RECORDING]) | st.binary(max_size=100))
@example(RECORDING)
@example(member({"x": "y" * 100_000})[:-4])
@bounded(90)
def test_any_recording_is_read_or_refused_in_a_line(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "r.jsonl.gz"
    path.write_bytes(data)
    try:
        recording = load(path)
    except UnreadableRecording as error:
        told(error.message)
    else:
        assert all(isinstance(exchange, RecordedExchange) for exchange in recording.exchanges)


@given(
    damaged([json.dumps(EVENT).encode()])
    | st.dictionaries(st.sampled_from(sorted(EVENT)), JSON_VALUES, max_size=7).map(
        lambda fields: as_json(EVENT | fields).encode()
    ),
    st.sampled_from(EVENTS),
)
@example(b"[" * 200_000, "stop")
@bounded(110)
def test_any_hook_event_is_one_or_malformed(data: bytes, name: str) -> None:
    try:
        event = parse_event(data, name)
    except Malformed as error:
        told(str(error))
    else:
        assert event.session


@given(
    st.lists(
        JSON_VALUES.map(as_json) | READABLE | st.just(json.dumps({"type": "assistant", "message": EVENT})),
        max_size=5,
    )
)
@bounded(60)
def test_any_transcript_is_read(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(lines), "utf-8", errors="replace")
    first = transcript.read(str(path), "s-1", "", transcript.TranscriptPosition())
    assert all(count >= 0 for request in first.requests for count in request.usage.counts)
    assert transcript.read(str(path), "s-1", "", first.place).requests == ()


@given(
    pieces(
        "[budget]\n",
        "session_tokens",
        " = ",
        "5\n",
        "'x'\n",
        '"""',
        "[[",
        "]]\n",
        "circuit.",
        "rapid_fire",
        "{",
        "}",
        "#",
    )
    | damaged([CONFIG.encode()]).map(lambda data: data.decode("utf-8", "replace"))
)
@example("a." * 2_000 + "b = 1\n")
@example("a = " + "[" * 3_000)
@bounded(90)
def test_any_configuration_is_read_or_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / ".lopen" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8", errors="replace")
    try:
        loaded = load_settings(tmp_path, environ={})
    except LopenError as error:
        told(*error.message.split("\n"))
    else:
        assert loaded.settings.budget


@given(
    damaged([CONFIG.encode()]).map(lambda data: data.decode("utf-8", "replace")) | st.just(CONFIG),
    st.sampled_from(
        ["budget.session_tokens", "circuit.rapid_fire.window", "models.fallback", "sandbox.mode"]
    ),
    st.integers(0, 10**9) | READABLE | st.lists(READABLE, max_size=3) | st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
)
@bounded(90)
def test_a_value_set_in_any_configuration_is_there_and_nothing_else_changed(
    text: str, key: str, value: Any, newline: str
) -> None:
    text = text.replace("\n", newline)
    try:
        before = toml.parse(text, "config.toml")
    except LopenError:
        return
    try:
        after = tomllib.loads(with_value(text, key, value))
    except LopenError as error:
        told(*error.message.split("\n"))
        return
    found: Any = after
    *sections, last = key.split(".")
    for name in sections:
        found = found[name]
    assert found.pop(last) == value
    held: Any = before
    for name in sections:
        held = held.get(name, {}) if isinstance(held, dict) else {}
    assert {k: v for k, v in held.items() if k != last} == found


@given(st.sampled_from(sorted(keys())), READABLE)
@bounded(60)
def test_any_variable_is_read_or_refused(name: str, value: str) -> None:
    variable = "LOPEN_" + name.upper().replace(".", "__")
    try:
        load_settings(Path("/nonexistent"), environ={variable: value})
    except LopenError as error:
        told(*error.message.split("\n"))


@given(JSON_VALUES.map(as_json) | READABLE)
@example("[" * 100_000)
@bounded(60)
def test_any_lock_s_holder_is_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / "module-x.holder").write_text(text, "utf-8", errors="replace")
    assert lock_holder(tmp_path, "module-x") == {}


@given(
    pieces(
        "API_KEY=",
        "export ",
        "'",
        '"',
        "t0p-secret-value",
        "\n",
        "-----BEGIN PRIVATE KEY-----",
        "sk-ant-" + "a1" * 20,
    )
)
@bounded(90)
def test_any_file_of_secrets_is_read_and_redacting_twice_changes_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / ".env").write_text(text, "utf-8", errors="replace")
    known = KnownSecrets(tmp_path, {})
    once = known.redact(text)
    assert known.redact(once) == once
    assert not any(value in once for value in known.values if "redacted" not in value)
