"""Two steps of TRL's GRPO on Sokoban, with a tiny random model: by tools, then by actions written as text.

pip install 'arl-gym[trl]'
python examples/adapters/trl_grpo.py

For a real run take a model that calls tools, remove `max_steps`, and let vLLM sample (`use_vllm=True`).
"""

import tempfile
from pathlib import Path
from typing import Any

import trl
from datasets import Dataset

from arl_gym.adapters import task_dataset
from arl_gym.adapters.trl import environment_factory, episode_reward, rollout_func
from arl_gym.train.model import tiny_model, tiny_tokenizer


def success(environments: list[Any], log_metric: Any, **_: Any) -> list[None]:
    """Log how many episodes were won; None leaves the reward to the environment."""
    records = [environment.episode.record() for environment in environments]
    log_metric("success", sum(record["success"] for record in records) / len(records))
    return [None] * len(records)


def train(folder: str, *, tools: bool, **hook: Any) -> None:
    """Train for two steps and print the first one's numbers."""
    rows = task_dataset("ARL/Sokoban-v0", "train", n=8, library="trl", tools=tools)
    tokenizer = tiny_tokenizer()
    template = Path(trl.__file__).parent / "chat_templates" / "qwen3_instruct_2507.jinja"
    tokenizer.chat_template = template.read_text()
    config = trl.GRPOConfig(
        folder, max_steps=2, per_device_train_batch_size=4, num_generations=2, max_completion_length=96,
        logging_steps=1, report_to=[], save_strategy="no", disable_tqdm=True, use_cpu=True, bf16=False,
    )  # fmt: skip
    model = tiny_model(tokenizer, seed=0, hidden=32, layers=1)
    dataset = Dataset.from_list(rows)
    trainer = trl.GRPOTrainer(model, args=config, train_dataset=dataset, processing_class=tokenizer, **hook)
    trainer.train()
    print(
        {
            key: value
            for key, value in trainer.state.log_history[0].items()
            if "reward" in key or key == "success"
        }
    )


with tempfile.TemporaryDirectory() as folder:
    train(folder, tools=True, environment_factory=environment_factory("ARL/Sokoban-v0"), reward_funcs=success)
    train(folder, tools=False, rollout_func=rollout_func, reward_funcs=episode_reward)
