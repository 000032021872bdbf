"""Shop with the expert in the text WebShop: print every page it sees and what its purchase is worth.

python examples/play_webshop.py
"""

import gymnasium as gym

import arl_gym

gym.register_envs(arl_gym)  # importing arl_gym is enough; this tells linters so

env = gym.make("ARL/WebShop-v0", split="test", obs_mode="text_rich")
page, info = env.reset(options={"task_id": "test-000007"})
print(page)
over = False
while not over:
    action = env.get_wrapper_attr("expert_action")()
    page, reward, terminated, truncated, info = env.step(action)
    print(f"> {action}\n\n{page}")
    over = terminated or truncated
print(f"score {info['score']}, reward {reward}, {info['reward_details']}")
env.close()
