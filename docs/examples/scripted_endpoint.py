"""An endpoint that answers from a file, to try lopen with your own specification: no key, no network, no model.

    python scripted_endpoint.py ANSWERS.json [PORT]

You play the model. The file holds a list of turns, each a list of [tool, input]. It is read anew for each request. Where
no turn is left, the end of the request is printed, and the request waits until you add one. The judge's requests are not
asked of you: each is answered with a yes, so a build here shows how lopen works, and nothing about the work itself.
"""

import json
import re
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

answers, given = Path(sys.argv[1]), []


def words(message):
    """Return the text of a message, with what tools answered."""
    content = message["content"] if isinstance(message["content"], list) else [{"text": message["content"]}]
    return "\n".join(str(block.get("text") or block.get("content") or "") for block in content)


def verdict(request):
    """Return a yes to every criterion and question that the judge is asked."""
    asked = words(request["messages"][0])
    questions = re.split(r"^# ", asked.partition("# Questions about the change")[2], flags=re.M)[0]
    yes = [
        {"id": name, "holds": "yes"}
        for name in dict.fromkeys(re.findall(r"^([A-Z][\w-]*-\d+): ", asked, re.M))
    ]
    justified = [
        {"id": n, "answer": "justified", "because": "scripted"}
        for n in re.findall(r'^<<<\S* "(.+)"$', questions, re.M)
    ]
    said = {"passed": True, "confidence": "high", "summary": "A script said yes.", "findings": []}
    return [["submit_verdict", said | {"criteria": yes, "questions": justified}]]


def turn(request):
    """Return the next turn; wait for it where the file has none."""
    if any(tool["name"] == "submit_verdict" for tool in request.get("tools", [])):
        return verdict(request)
    print(f"--- request {len(given) + 1} ends with:\n{words(request['messages'][-1])[-1500:]}", flush=True)
    while len(turns := json.loads(answers.read_text("utf-8"))) <= len(given):
        time.sleep(1)
    given.append(turns[len(given)])
    return given[-1]


def events(model, calls):
    """Yield the events that the Messages API streams for a turn."""
    usage = {"input_tokens": 1000, "output_tokens": 100}
    start = {"id": f"msg_{len(given)}", "type": "message", "role": "assistant", "model": model, "content": []}
    yield {
        "type": "message_start",
        "message": start | {"stop_reason": None, "stop_sequence": None, "usage": usage},
    }
    for index, (tool, values) in enumerate(calls):
        use = {"type": "tool_use", "id": f"toolu_{time.time_ns()}", "name": tool, "input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": use}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(values)}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": usage,
    }
    yield {"type": "message_stop"}


class Endpoint(BaseHTTPRequestHandler):
    """Answers each request as a stream of server-sent events."""

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        calls = turn(request)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in events(request["model"], calls):
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    def log_message(self, *_):
        """Print requests in `turn` alone."""


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 8765), Endpoint).serve_forever()
