"""The environments inside other libraries: one module a library, named after it, on one shared core.

Each library is an extra of its own (`pip install 'arl-gym[skyrl]'`), and only its module imports it. What
needs no library is here: episodes for a loop of your own, and rows for its data set.
"""

from arl_gym.adapters.episode import AsyncTextEpisode, Step, TextEpisode, text_of
from arl_gym.adapters.tasks import task_dataset

__all__ = ["AsyncTextEpisode", "Step", "TextEpisode", "task_dataset", "text_of"]
