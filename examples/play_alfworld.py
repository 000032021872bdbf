"""Play one ALFWorld game of each kind with the expert, and show the longest as a transcript.

python examples/play_alfworld.py
"""

import gymnasium as gym

import arl_gym

gym.register_envs(arl_gym)  # importing arl_gym is enough; this tells linters so

env = gym.make("ARL/ALFWorld-v0", split="test")
transcripts: list[list[str]] = []
for kind in env.get_wrapper_attr("task_types"):
    observation, info = env.reset(seed=0, options={"task_type": kind})
    lines, over = [observation], False
    while not over:
        action = env.get_wrapper_attr("expert_action")()
        observation, reward, terminated, truncated, info = env.step(action)
        lines += [f"> {action}", observation]
        over = terminated or truncated
    print(f"{kind}: {info['task']} {'done' if info['success'] else 'not done'} in {len(lines) // 2} steps")
    transcripts.append(lines)
env.close()
longest = max(transcripts, key=len)
print("\n" + "\n\n".join(longest))
