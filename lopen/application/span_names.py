"""Names in traces: those of OpenTelemetry's semantic conventions for generative AI, and lopen's own.

See https://opentelemetry.io/docs/specs/semconv/gen-ai/ and docs/reference/server.md.
"""

from __future__ import annotations

SERVICE = "lopen"
INVOKE_WORKFLOW, INVOKE_AGENT, CHAT, EXECUTE_TOOL = "invoke_workflow", "invoke_agent", "chat", "execute_tool"
PROVIDER, FUNCTION = "anthropic", "function"

OPERATION = "gen_ai.operation.name"
PROVIDER_NAME = "gen_ai.provider.name"
CONVERSATION_ID = "gen_ai.conversation.id"
WORKFLOW_NAME = "gen_ai.workflow.name"
AGENT_NAME = "gen_ai.agent.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
MAX_TOKENS = "gen_ai.request.max_tokens"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS = "gen_ai.usage.cache_creation.input_tokens"
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL_ID = "gen_ai.tool.call.id"
ERROR_TYPE = "error.type"

MODULE = "lopen.module"
STEP = "lopen.step"
ITERATION = "lopen.iteration"
TURN = "lopen.turn"
TASK = "lopen.task"
OUTCOME = "lopen.outcome"
COST_USD = "lopen.cost_usd"
