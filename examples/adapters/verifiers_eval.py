"""Evaluate on a taskset of verifiers, with a stub on loopback that plays the expert in place of a model.

    pip install 'arl-gym[verifiers]'
    python examples/adapters/verifiers_eval.py

In earnest: vf-eval arl-gym-verifiers --env.taskset.env-id ARL/Sokoban-v0 -n 20 -m MODEL --client.base-url URL
"""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from verifiers.v1.cli.eval.runner import run_eval
from verifiers.v1.configs.cli.eval import EvalConfig

from arl_gym.adapters.episode import TextEpisode

ENV_ID, TASK_ID = "ARL/Sokoban-v0", "train-000000"


def expert_responses() -> list[str]:
    """Solve the task beforehand."""
    responses = []
    with TextEpisode(ENV_ID, {"expert": True}, task_id=TASK_ID) as episode:
        while not episode.done:
            thought, action = episode.info["expert_thought"], episode.info["expert_action"]
            responses.append(f"<think>{thought}</think><action>{action}</action>")
            episode.act(responses[-1])
    return responses


RESPONSES = expert_responses()


class Stub(BaseHTTPRequestHandler):
    """Answers the k-th turn of a conversation with the k-th response."""

    def do_POST(self) -> None:
        """Answer like a server of chat completions."""
        messages = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
        turn = sum(message["role"] == "assistant" for message in messages)
        message = {"role": "assistant", "content": RESPONSES[turn]}
        body = {"id": "1", "object": "chat.completion", "created": 0, "model": "stub"}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({**body, "choices": choices}).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


with ThreadingHTTPServer(("127.0.0.1", 0), Stub) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings = {
        "env": {"taskset": {"id": "arl-gym-verifiers", "env_id": ENV_ID, "n": 1}},
        "model": "stub",
        "client": {"base_url": f"http://127.0.0.1:{server.server_address[1]}/v1"},
        "num_rollouts": 4,
        "push": False,
        "rich": None,
    }
    for episode in asyncio.run(run_eval(EvalConfig.model_validate(settings))):
        trace = episode.traces[0]
        rewards = trace.info["arl_gym"]["rewards"]
        print(f"{trace.task.key}: return {trace.reward:.1f} of {rewards}, success {trace.metrics['success']}")
    server.shutdown()
