"""Play Sokoban in GEM's vector environment, with whole dialogues as observations.

python examples/adapters/gem_vector.py
"""

import gem
from gem.wrappers.wrapper_factory import get_wrapper_fns

from arl_gym.adapters.gem import register
from arl_gym.agents.policies import format_response

register()
vec = gem.make_vec(
    ["arl:Sokoban-v0"] * 4,
    wrappers=get_wrapper_fns("concat_with_action,episode_tracking"),
    async_mode=True,
    seed=7,
    expert=True,
)
dialogues, infos = vec.reset()
n_over = n_solved = 0
while n_over < 12:
    # Here a model would answer the dialogues. The environments' expert stands in for it.
    responses = [format_response("strict", i["expert_thought"], i["expert_action"]) for i in infos]
    dialogues, rewards, terminated, truncated, infos = vec.step(responses)
    for info, over in zip(infos, terminated | truncated, strict=True):
        if over:  # GEM has begun the next episode already: the one that ended is in the info
            record = info["final_info"]["record"]
            n_over, n_solved = n_over + 1, n_solved + record["success"]
            print(f"{record['task_id']}: {len(record['rewards'])} turns, return {sum(record['rewards']):.1f}")
print(f"{n_solved} of {n_over} rooms solved; the longest dialogue has {max(map(len, dialogues))} characters")
for env in vec.envs:
    env.unwrapped.close()
