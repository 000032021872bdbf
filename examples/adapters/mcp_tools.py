"""Serve one episode to a client of the Model Context Protocol, which starts this script and speaks to it.

python examples/adapters/mcp_tools.py ARL/Sokoban-v0 train-000007
"""

import sys

from arl_gym.adapters.episode import TextEpisode
from arl_gym.adapters.mcp import serve

env_id, task_id = sys.argv[1:] or ("ARL/Sokoban-v0", "train-000007")
with TextEpisode(env_id, task_id=task_id, tools=True) as episode:
    serve(episode, sys.stdin, sys.stdout)
record = episode.record()
print(f"{len(record['rewards'])} turns, return {sum(record['rewards']):.1f}", file=sys.stderr)
