"""Research: one sub-agent with the read-only tools, a fresh context and a bounded number of turns."""

from __future__ import annotations

from dataclasses import replace

from lopen.core.events import Notice
from lopen.loop.context import SessionContext
from lopen.loop.model_calls import ModelCall
from lopen.models.messages import ContextTooLong, Request, SystemBlock
from lopen.models.prompts.parts import DECIDED, decision_lines
from lopen.models.prompts.templates import template
from lopen.models.request_body import cut_call, sendable, text_block
from lopen.specification.modules import render_note, slug
from lopen.tools.calls import ToolResult, done, failed, tool_result
from lopen.tools.catalogue import Registry
from lopen.tools.running import NoLog, ToolRunner
from lopen.tools.workbench import Workbench
from lopen.workflow.pauses import Pause, circuit_open

MAX_TURNS = 20
CUT_OFF = "(These findings were cut off at the longest answer that the model may give.)"
TOOLS = ("read_file", "list_files", "search_files", "read_spec", "read_research")


def research(context: SessionContext, bench: Workbench, topic: str, question: str) -> ToolResult:
    """Ask the sub-agent; its findings are logged under the topic."""
    gate, turn = context.guards.meter.gate, context.guards.watch.turn
    agent = gate.name_agent(question)
    refused = context.models.calls.start_agent(agent, turn)
    if refused is not None:
        why = refused.text(context.models.calls.clock.now())
        refusal = failed(why, "go on without research", outcome="refused")
        if refused.needs_ack:
            return replace(refusal, pause=circuit_open(bench.session.id, refused.seen, refused.command))
        return refusal
    try:
        with gate.inside(agent):
            answer, pause = _converse(context, bench, question)
    except ContextTooLong as error:
        return failed(f"the research ended without an answer: {error}", "ask a narrower question")
    finally:
        context.guards.watch.begin_turn(turn)
        gate.agent_done(agent)
    if pause is not None:
        return replace(failed("the run is pausing; the research was not finished"), pause=pause)
    if not answer.strip():
        return failed("the research ended without an answer", "go on without it, or ask a narrower question")
    summary = answer.strip().split("\n\n", 1)[0]
    name = f"specs/{context.record.journal.session.module}/RESEARCH-{slug(topic)}.md"
    context.project.place.write_document(name, render_note(topic, summary, answer, (), ""))
    context.project.verifier.mark_own_file(name)
    context.record.journal.tell(Notice("detail", f"research logged: {name}"))
    return done(path=name, summary=summary)


def _converse(context: SessionContext, bench: Workbench, question: str) -> tuple[str, Pause | None]:
    """Converse with the read-only tools; the first answer without a tool call is the findings."""
    tools = Registry(t for name in TOOLS if (t := context.registry.get(name)) is not None)
    runner = ToolRunner(
        bench,
        tools,
        context.record.audit,
        context.guards.watch,
        NoLog(),
    )
    system = template("research", context.settings.workflow.templates)
    if decided := decision_lines(bench.session):
        system = f"{system}\n\n## {DECIDED}\n{decided}"
    request = Request(
        model=context.models.override or context.settings.models.research,
        system=(SystemBlock(system, cached=True),),
        messages=({"role": "user", "content": [text_block(question)]},),
        tools=tuple(t.spec for t in tools.offered(bench.session.step)),
        max_tokens=context.settings.model.max_tokens,
        purpose="research",
    )
    for turn in range(1, MAX_TURNS + 1):
        runner.begin_turn(turn)
        response = context.models.calls.ask(ModelCall(request, "research", turn))
        if response.stop_reason in ("refusal", "model_context_window_exceeded"):
            return "", None
        if not response.tool_uses:
            cut_off = response.stop_reason == "max_tokens"
            return f"{response.text}\n\n{CUT_OFF}" if cut_off else response.text, None
        answers = runner.run(response.tool_uses, unfinished=cut_call(response))
        results = [tool_result(use, answer) for use, answer in zip(response.tool_uses, answers, strict=True)]
        if runner.pause is not None:  # nothing more is paid for
            return "", runner.pause
        messages = (
            *request.messages,
            {"role": "assistant", "content": sendable(response.content)},
            {"role": "user", "content": results},
        )
        request = replace(request, messages=messages)
    return "", None
