"""What lopen and the judge refused in a conversation and was not mended in it: the next fresh prompt tells it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lopen.llm.messages import Json, ToolUse
from lopen.llm.recorder import result_fields, result_text
from lopen.oracle.verdict import Finding
from lopen.prompts.parts import bullet
from lopen.tools.running import summarised

REFUSAL_CHARS = 4_000  # of one refusal: its words, and the tail of its output
FAILURES_TOLD, FAILURE_CHARS = 10, 600
SETTLING = (
    "verify_",
    "record_",
    "select_",
    "update_task_status",
    "write_spec",
)  # tools whose last result counts


def still_refused(messages: Sequence[Json]) -> str:
    """Return the last result of each verification and recording tool where it was a refusal, in words."""
    uses: dict[str, str] = {}
    last: dict[str, dict[str, Any]] = {}
    for block in _blocks(messages):
        if block.get("type") == "tool_use" and _settles(block):
            uses[block["id"]] = block["name"]
        elif block.get("type") == "tool_result" and block["tool_use_id"] in uses:
            tool = uses[block["tool_use_id"]]
            if result_fields(block).get("skipped"):
                continue
            last = {name: result for name, result in last.items() if name != tool} | {
                tool: result_fields(block)
            }
    return "\n".join(_in_words(tool, fields) for tool, fields in last.items() if _is_refusal(fields))


def failed_calls(uses: Sequence[ToolUse], blocks: Mapping[str, Json]) -> tuple[str, ...]:
    """Return a note on the calls that failed in the turn that recorded a result; empty where none did.

    No request shows the model the results of that turn. Verifications and recording tools are not among them.
    """
    failures = []
    for use in uses:
        fields = result_fields(blocks[use.id])
        if use.name.startswith(SETTLING) or (fields.get("ok", True) and not fields.get("exit_code")):
            continue
        output = result_text(blocks[use.id]).partition("\n")[2]
        said = fields.get("error") or f"exit code {fields['exit_code']}\n{output[-FAILURE_CHARS:]}"
        failures.append(bullet(f"{use.name} {summarised(use)}: {said}"))
    if not failures:
        return ()
    return (
        "\n".join(
            ["These calls failed in the turn that ended the last conversation:", *failures[:FAILURES_TOLD]]
        ),
    )


def _blocks(messages: Sequence[Json]) -> Iterator[Json]:
    for message in messages:
        if not isinstance(message["content"], str):
            yield from message["content"]


def _settles(use: Json) -> bool:
    """A task given up as failed settles nothing: what was refused of it stays refused."""
    return str(use["name"]).startswith(SETTLING) and use["input"].get("status") != "failed"


def _is_refusal(fields: dict[str, Any]) -> bool:
    # What was skipped is told by the result that it rests on.
    return not fields.get("skipped") and (not fields.get("ok", True) or fields.get("passed") is False)


def _in_words(tool: str, fields: dict[str, Any]) -> str:
    said = fields.get("error") or fields.get("summary") or f"exit code {fields.get('exit_code')}"
    lines = [f"{tool}: {said}"]
    lines += [f"- {Finding(**finding)}" for finding in fields.get("findings", ())]
    head = "\n".join(lines)[:REFUSAL_CHARS]
    output = (
        str(fields.get("output", ""))[-(REFUSAL_CHARS - len(head)) :] if len(head) < REFUSAL_CHARS else ""
    )
    return f"{head}\n{output}".rstrip()
