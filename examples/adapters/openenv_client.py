"""Play an environment that OpenEnv serves: a server on loopback, and a client that follows the expert.

    pip install 'arl-gym[openenv]'
    python examples/adapters/openenv_client.py

In earnest the server is a process of its own: arl-gym serve-openenv ARL/Sokoban-v0
"""

import socket
import threading

import uvicorn

from arl_gym.adapters.episode import TextEpisode
from arl_gym.adapters.openenv import ChatAction, ChatClient, app

ENV_ID, TASK_ID = "ARL/Sokoban-v0", "train-000007"


def expert_responses() -> list[str]:
    """Solve the task at home; a model would read `observation.messages` instead."""
    responses = []
    with TextEpisode(ENV_ID, {"expert": True}, task_id=TASK_ID) as episode:
        while not episode.done:
            thought, action = episode.info["expert_thought"], episode.info["expert_action"]
            responses.append(f"<think>{thought}</think><action>{action}</action>")
            episode.act(responses[-1])
    return responses


# A socket that listens before the server runs: the client waits in its queue.
listening = socket.create_server(("127.0.0.1", 0))
server = uvicorn.Server(uvicorn.Config(app(ENV_ID), log_level="warning"))
threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True).start()
url = f"http://127.0.0.1:{listening.getsockname()[1]}"

with ChatClient(base_url=url).sync() as client:
    result = client.reset(task_id=TASK_ID)
    print(result.observation.messages[-1]["content"])
    for response in expert_responses():
        result = client.step(ChatAction(response=response))
        print(f"reward: {result.reward:.1f}")
    print(f"success: {result.observation.success}")
