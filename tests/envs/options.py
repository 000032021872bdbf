"""The options of the registered environments that need nothing else, and pairwise choices of them."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from arl_gym.core import SPLITS

LEVEL = "######\n#    #\n# @$ #\n#  . #\n######"

OPTIONS: dict[str, dict[str, tuple[Any, ...]]] = {
    "ARL/ALFWorld-v0": {
        "split": SPLITS,
        "task_types": (None, ["pick_and_place_simple", "look_at_obj_in_light"]),
        "rooms": (None, ["kitchen", "bedroom"]),
        "num_receptacles": (None, 12),
        "num_objects": (None, 15),
        "num_tasks": (None, 6),
        "lenient": (False, True),
        "max_steps": (50, 20),
        "reward_mode": ("sparse10", "sparse1"),
    },
    "ARL/Sokoban-v0": {
        "split": SPLITS,
        "optimal": (None, [3, 6]),
        "num_tasks": (None, 6),
        "max_steps": (None, 12),
        "obs_mode": ("text", "grid", "planes", "image", "both"),
        "text_format": ("spaced", "compact", "inner"),
        "tile_size": (32, 28, 16),
        "action_mode": (None, "text", "discrete"),
        "exact_states": (1_000, 0),
    },
    "ARL/TIRMath-v0": {
        "split": SPLITS,
        "levels": (None, [1, 2]),
        "num_tasks": (None, 6),
        "sandbox": ("auto", "unsafe"),
        "on_void": ("terminate", "continue", "penalize"),
        "state": ("fresh", "replayed"),
        "errors": ("last_line", "full"),
        "max_output_chars": (512, 40),
        "hint_silent": (False, True),
        "final_answer": (True, False),
        "max_steps": (5, 3),
    },
    "ARL/WebShop-v0": {
        "split": SPLITS,
        "catalogue": ("full", "mini"),
        "num_tasks": (None, 6),
        "obs_mode": ("text", "text_rich", "html", "url"),
        "results_per_page": (10, 3),
        "show_attributes": (False, True),
        "hide_empty_next": (False, True),
        "mark_clicked": (False, True),
        "number_results": (False, True),
        "compat": (False, True),
        "max_steps": (15, 9),
        "reward_mode": ("sparse10", "score"),
    },
}

BESIDE: dict[str, set[str]] = {
    "ARL/ALFWorld-v0": {"dataset", "data_dir", "engine"},
    "ARL/Sokoban-v0": {"levels", "dim_room", "num_boxes", "max_nodes"},
    "ARL/TIRMath-v0": {"dataset", "data", "families", "timeout_s", "memory_mb"},
    "ARL/WebShop-v0": {
        "dataset",
        "data_dir",
        "goals",
        "num_products",
        "split_mode",
        "nouns",
        "frontend",
        "site_url",
        "screenshot_size",
        "set_of_marks",
    },
}
"""Arguments with tests of their own: data of others, a browser, the real ALFWorld, sizes and limits."""


def pairwise(options: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return choices of all options in which every two values of two options meet, greedily few."""
    names = list(options)
    todo = {
        ((a, i), (b, j))
        for a, b in combinations(names, 2)
        for i in range(len(options[a]))
        for j in range(len(options[b]))
    }
    rows: list[dict[str, Any]] = []
    while todo:
        chosen = dict(min(todo))
        for name in names:
            if name not in chosen:
                gains = [
                    sum(
                        tuple(sorted([(name, i), other], key=lambda at: names.index(at[0]))) in todo
                        for other in chosen.items()
                    )
                    for i in range(len(options[name]))
                ]
                chosen[name] = gains.index(max(gains))
        ordered = [(name, chosen[name]) for name in names]
        todo -= set(combinations(ordered, 2))
        rows.append({name: options[name][i] for name, i in ordered})
    return rows
