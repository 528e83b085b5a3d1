"""Research: one sub-agent with the read-only tools, a fresh context and a bounded number of turns."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

from lopen.base.events import Notice
from lopen.documents.research import render, slug
from lopen.llm.messages import ContextTooLong, Request, SystemBlock
from lopen.llm.request_body import sendable, text_block
from lopen.loop.context import Ports
from lopen.loop.conversation import tool_result
from lopen.prompts.templates import template
from lopen.tools.registry import Registry
from lopen.tools.results import ToolResult, done, failed
from lopen.tools.running import ToolRunner
from lopen.tools.workbench import Workbench
from lopen.workflow.pauses import circuit_pause

MAX_TURNS = 20
TOOLS = ("read_file", "list_files", "search_files", "read_spec", "read_research")


def research(ports: Ports, bench: Workbench, topic: str, question: str) -> ToolResult:
    """Ask the sub-agent; its findings are logged under the topic."""
    gate, agent, turn = ports.meter.gate, f"research-{uuid4().hex[:8]}", ports.watch.turn
    refused = ports.asker.start_agent(agent, turn)
    if refused is not None:
        if refused.needs_ack:
            bench.pause = bench.pause or circuit_pause(bench.session, refused.text, refused.command)
        return failed(refused.text, "go on without research", outcome="refused")
    try:
        with gate.inside(agent):
            answer = _converse(ports, bench, question)
    except ContextTooLong as error:
        return failed(f"the research ended without an answer: {error}", "ask a narrower question")
    finally:
        ports.watch.begin_turn(turn)
        gate.agent_done(agent)
    if not answer.strip():
        return failed("the research ended without an answer", "go on without it, or ask a narrower question")
    summary = answer.strip().split("\n\n", 1)[0]
    name = f"specs/{ports.journal.session.module}/RESEARCH-{slug(topic)}.md"
    ports.place.write_document(name, render(topic, summary, answer, (), ""))
    ports.verifier.own_paper(name)
    ports.journal.tell(Notice("info", f"research logged: {name}"))
    return done(path=name, summary=summary)


def _converse(ports: Ports, bench: Workbench, question: str) -> str:
    """Turn after turn with the read-only tools; the first answer without a tool call is the findings."""
    tools = Registry(t for name in TOOLS if (t := ports.registry.get(name)) is not None)
    runner = ToolRunner(bench, tools, ports.audit, ports.watch, ports.clock, bench.session.iterations)
    request = Request(
        model=ports.model_override or ports.settings.models.research,
        system=(SystemBlock(template("research", ports.settings.workflow.templates), cached=True),),
        messages=({"role": "user", "content": [text_block(question)]},),
        tools=tuple(t.spec for t in tools.offered(bench.session.step)),
        max_tokens=ports.settings.model.max_tokens,
        purpose="research",
    )
    for turn in range(1, MAX_TURNS + 1):
        runner.begin_turn(turn)
        response = ports.asker.ask(request, agent="research", turn=turn, on_text=lambda _: None)
        if not response.tool_uses:
            return response.text
        results = [
            tool_result(u, r) for u, r in zip(response.tool_uses, runner.run(response.tool_uses), strict=True)
        ]
        if bench.pause is not None:  # nothing more is paid for
            return ""
        messages = (
            *request.messages,
            {"role": "assistant", "content": sendable(response.content)},
            {"role": "user", "content": results},
        )
        request = replace(request, messages=messages)
    return ""
