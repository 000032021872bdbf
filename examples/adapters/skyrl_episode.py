"""Play rows of a data set as SkyRL's generator does, and show the metrics that it logs.

python examples/adapters/skyrl_episode.py
"""

import skyrl_gym
from skyrl_gym.metrics import aggregate_for_environment

from arl_gym.adapters.skyrl import register
from arl_gym.adapters.tasks import task_dataset
from arl_gym.agents.policies import format_response

register()
# To train: datasets.Dataset.from_list(rows).to_parquet("train.parquet")
rows = task_dataset("ARL/Sokoban-v0", "train", n=4, library="skyrl", expert=True)
rows += task_dataset("ARL/WebShop-v0", "train", n=4, library="skyrl", expert=True)

metrics = []
for row in rows:
    env = skyrl_gym.make(row["env_class"], env_config={}, extras={**row, "max_turns": 20})
    dialogue, info = env.init(row["prompt"])
    done = False
    while not done:
        # Here a model would answer the dialogue. The environment's expert stands in for it.
        response = format_response("strict", info["expert_thought"], info["expert_action"])
        output = env.step(response)
        dialogue += [{"role": "assistant", "content": response}, *output["observations"]]
        done, info = output["done"], output["metadata"]
    metrics.append(env.get_metrics())
    print(f"{row['task_id']}: {len(dialogue)} messages, return {metrics[-1]['return']:.1f}")
    env.close()

for name, mean in aggregate_for_environment("arl_gym", metrics).items():
    print(f"environment/{name}: {mean:.2f}")
