"""ALFWorld: observations, rewards, info keys, the expert, and the card of the environment."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from typing import Any, Literal, cast

from arl_gym.core import Outcome, TextEnv, Unicode, check_count
from arl_gym.envs.alfworld.engines import Engine, TextWorldEngine
from arl_gym.envs.alfworld.games import Games
from arl_gym.envs.alfworld.generated import GeneratedGames
from arl_gym.envs.alfworld.generator import ROOMS, Settings
from arl_gym.envs.alfworld.house import NOTHING_HAPPENS, House
from arl_gym.envs.alfworld.lenient import read_lenient
from arl_gym.envs.alfworld.original import OriginalGames
from arl_gym.envs.alfworld.planner import plan, thought
from arl_gym.envs.alfworld.scene import TASK_TYPES
from arl_gym.errors import ConfigError, EpisodeOverError, UnknownNameError

Dataset = Literal["generated", "original"]
EngineName = Literal["native", "textworld"]
RewardMode = Literal["sparse10", "sparse1"]

_REWARDS = {"sparse10": 10.0, "sparse1": 1.0}


class ALFWorldEnv(TextEnv):
    """ALFWorld: find, treat and place household objects by text commands.

    ## Task
    A room of receptacles (cabinets, tables, a fridge …) and objects. The goal is one of six kinds; the agent
    sees what lies on or in a receptacle only when it stands there, and must open what is closed.

    | task_type | goal, in one of its two wordings |
    |---|---|
    | pick_and_place_simple | put a mug in shelf. |
    | look_at_obj_in_light | examine the book with the desklamp. |
    | pick_clean_then_place_in_recep | clean some apple and put it in fridge. |
    | pick_heat_then_place_in_recep | put a hot egg in garbagecan. |
    | pick_cool_then_place_in_recep | cool some pan and put it in stoveburner. |
    | pick_two_obj_and_place | put two candle in toilet. |

    ## Observation
    The text the game says, byte for byte that of alfworld 0.4.2 on textworld 1.7.0. The first one lists the
    receptacles and ends with the task; a command that cannot be carried out answers "Nothing happens."

        You arrive at fridge 1. The fridge 1 is closed.

    ## Action
    One command as text, exactly as `info["admissible_actions"]` has it; outer blanks do not matter.

    | command | what it does |
    |---|---|
    | `go to fridge 1` | walk there |
    | `open cabinet 2`, `close cabinet 2` | a cabinet, drawer, fridge, microwave or safe here |
    | `take mug 1 from shelf 3` | with an empty hand; the hand holds one object |
    | `move mug 1 to shelf 3` | put down what is held, where that kind may lie |
    | `clean`, `heat`, `cool` `mug 1 with …` | what is held, at a sinkbasin, microwave or fridge |
    | `use desklamp 1` | switch on; nothing switches off |
    | `slice apple 1 with knife 1` | what lies here, holding the knife |
    | `examine fridge 1`, `examine mug 1` | a receptacle here, or what is held |
    | `look`, `inventory` | where one stands; what one holds |

    Any other string is a step in which nothing happens, with `action_valid` False. So is `help`, which the
    game answers, but which is not among the admissible actions. Games with the older grammar have
    `put mug 1 in/on shelf 3` instead of `move` (see `grammar_version`).

    ## Reward
    | event | reward |
    |---|---|
    | the goal is reached | +10 |
    | any other step | 0 |

    `reward_mode="sparse1"` gives 1 instead of 10.

    ## Episode end
    Terminated when the goal is reached; truncated after `max_steps` commands (50).

    ## Info
    The keys of every environment, `score` being `goal_condition_success`, and

    - `task_type` (str): one of the six above; `game_id` (str): folder of the game below its split.
    - `goal_condition_success` (float): share of the goal's conditions that hold. To place: the object is in
      place (1). To look: it is held, a lamp is on here (2). To clean, heat or cool: one is in place, one is
      treated, one is both (3). Two: the objects in the fullest place (2). 1 exactly when the goal is reached.
    - `grammar_version` (str): "0.4" or "0.3"; `engine` (str): "native" or "textworld".
    - `command` (str): what the game was told: the action, or with `lenient` what was read out of it.

    ## Reset options
    `{"task_id": id}`: `train-000000` to `-003999`, `val-`, `test-` and `test_ood-000000` to `-000255`; with
    the original data `<split>/<game_id>`. `{"task_type": name}`: the seed chooses among this kind.

    ## Arguments
    - `dataset`: "generated" (default, nothing to download) or "original": the benchmark's games, from
      `data_dir`, else the folder in `ALFWORLD_DATA`, else `~/.cache/alfworld`. Generated games exported to
      such a folder are still called "generated" in the infos.
    - `split`: "train", "val", "test" or "test_ood"; of the original data "train", "valid_seen" (or "val") and
      "valid_unseen" (or "test_ood").
    - `task_types`: only these kinds; None is all six.
    - `rooms`, `num_receptacles`, `num_objects`: for generated games, the room kinds ("kitchen", "living",
      "bedroom", "bathroom") and the most receptacles and objects; None leaves the rooms as they are.
    - `num_tasks`: only the first so many tasks of the split; None is all.
    - `engine`: "native" (default), or "textworld": the real package, thousands of times slower, which also
      plays games with rules the native engine does not know (extra `alfworld`, Python below 3.13).
    - `lenient` (False): read near-miss wordings ("put the Mug 1 on shelf 3") as the command they mean.
    - `max_steps` (50), `reward_mode`, `render_mode` ("ansi", "rgb_array", "human").

    ## Determinism
    A task id with the same arguments is the same game in every process and on every machine. Nothing else is
    random.

    ## Data and licence
    Generated games (dataset "generated") are drawn by this package from the vocabulary of ALFRED, with the
    domain and grammar of alfworld (MIT). They are not the benchmark: their scores compare with one another
    only. Splits share no game; "test_ood" has room layouts and goal pairs (object, place) that occur in no
    other split. The original games (dataset "original") are read where you have them; none are shipped.

    ## Baselines
    On generated games random admissible actions reach no goal of 256 test tasks in 50 steps (95% interval: at
    most 1.5 %). The expert, which sees the whole house, reaches all of val, test and test_ood, in 5.9 steps
    on average. Nothing is known yet of trained agents; what papers report is of the original games.

    ## Version history
    - v0: first release.
    """

    reset_options = ("task_id", "task_type")

    def __init__(
        self,
        *,
        dataset: Dataset = "generated",
        split: str = "train",
        data_dir: str | None = None,
        task_types: Sequence[str] | None = None,
        rooms: Sequence[str] | None = None,
        num_receptacles: int | None = None,
        num_objects: int | None = None,
        num_tasks: int | None = None,
        engine: EngineName = "native",
        lenient: bool = False,
        max_steps: int = 50,
        reward_mode: RewardMode = "sparse10",
        render_mode: str | None = None,
    ):
        super().__init__(dataset=dataset, split=split, max_steps=max_steps, render_mode=render_mode)
        for name, value, known in (
            ("dataset", dataset, ("generated", "original")),
            ("engine", engine, ("native", "textworld")),
            ("reward_mode", reward_mode, tuple(_REWARDS)),
        ):
            if value not in known:
                raise UnknownNameError(name, value, known, "ALFWorldEnv")
        self.task_types = _checked_types(task_types)
        """The kinds of task that are played."""
        self.engine: EngineName = engine
        self._lenient, self._reward = lenient, _REWARDS[reward_mode]
        check_count("num_tasks", num_tasks)
        self._num_tasks = num_tasks
        self._games: Games
        if dataset == "generated":
            if data_dir is not None:
                raise ConfigError(f"data_dir goes with dataset='original', got data_dir={data_dir!r}")
            kinds = ROOMS if rooms is None else tuple(rooms)
            self._games = GeneratedGames(_settings(self.task_types, kinds, num_receptacles, num_objects))
        else:
            given = {"rooms": rooms, "num_receptacles": num_receptacles, "num_objects": num_objects}
            if wrong := [name for name, value in given.items() if value is not None]:
                name = wrong[0]
                raise ConfigError(f"{name} goes with dataset='generated', got {name}={given[name]!r}")
            self._games = OriginalGames(data_dir, need_native=engine == "native")
            if self._games.n_generated(split):
                self.dataset = "generated"  # exported ones: their results are not the benchmark's
        self.split = self._games.split_name(split)
        self.observation_space, self.action_space = Unicode(), Unicode()
        self._ids: dict[str, Sequence[str]] = {}
        self._pools: dict[str, list[str]] = {}
        # The base class lets nothing in that needs an engine before a reset has made one.
        self._engine = cast(Engine, None)
        self.task_ids()  # a data set that cannot be played should say so now, not at the first reset

    # ---- tasks

    def task_ids(self, split: str | None = None) -> Sequence[str]:
        """Return the ids of a split, of the env's kinds of task, at most `num_tasks`.

        Raises:
            UnknownNameError: If the data set has no such split.
        """
        name = self._games.split_name(split or self.split)
        if name not in self._ids:
            ids = self._games.ids(name)
            if isinstance(self._games, OriginalGames) and self.task_types != TASK_TYPES:
                ids = sorted(chain.from_iterable(self._games.ids(name, kind) for kind in self.task_types))
            self._ids[name] = ids if self._num_tasks is None else ids[: self._num_tasks]
        return self._ids[name]

    def _pool(self, options: Mapping[str, Any]) -> Sequence[str]:
        kind = options.get("task_type")
        if kind is None:
            return self.task_ids()
        if kind not in self.task_types:
            raise UnknownNameError("task_type", kind, self.task_types, "ALFWorldEnv")
        if kind not in self._pools:
            of_kind = set(self._games.ids(self.split, kind))
            self._pools[kind] = [i for i in self.task_ids() if i in of_kind]
        if not self._pools[kind]:
            raise ConfigError(f"no task of split {self.split!r} has task_type={kind!r}")
        return self._pools[kind]

    def _begin(self, task_id: str) -> None:
        self.close()
        if self.engine == "native":
            self._engine = House(self._games.game(task_id))
        else:
            self._engine = TextWorldEngine(self._games.file_text(task_id))
        self._game_id = self._games.game_id(task_id)
        self._command, self._seen = "", self._engine.intro()
        self._plan: list[str] = []

    def close(self) -> None:
        """Give the real engine back, if there is one. Twice is fine."""
        if isinstance(self._engine, TextWorldEngine):
            self._engine.close()
        self._engine, self._running = cast(Engine, None), False
        super().close()

    # ---- one step

    def _apply(self, action: str) -> Outcome:
        engine = self._engine
        self._command = self._read(action)
        self._seen = engine.act(self._command)
        valid = self._seen != NOTHING_HAPPENS and self._command != "help"
        # The rest of a shortest plan is one for the state its first command leads to.
        self._plan = self._plan[1:] if self._plan and self._plan[0] == self._command else []
        won = engine.won
        return Outcome(reward=self._reward if won else 0.0, terminated=won, valid=valid)

    def _read(self, action: str) -> str:
        command, house = action.strip(), self._engine.house
        if not self._lenient or house is None:
            return command
        return read_lenient(command, house.game) or command

    # ---- what is seen

    def _observation(self) -> str:
        return self._seen

    def _task(self) -> str:
        return self._engine.task

    def _content_hash(self) -> str:
        return self._engine.content_hash

    def _success(self) -> bool:
        return self._engine.won

    def _score(self) -> float:
        met, wanted = self._engine.conditions()
        return met / wanted

    def _state_key(self) -> str:
        return self._engine.state_key

    def _admissible(self) -> list[str]:
        commands = self._engine.commands().copy()
        with suppress(ValueError):  # the older grammar has none
            commands.remove("help")
        return commands

    def _extra_info(self) -> dict[str, Any]:
        return {
            "task_type": self._game_id.partition("-")[0],
            "game_id": self._game_id,
            "goal_condition_success": self._score(),
            "grammar_version": self._engine.grammar,
            "engine": self.engine,
            "command": self._command,
        }

    def _ansi(self) -> str:
        return f"> {self._command}\n\n{self._seen}" if self._command else self._seen

    # ---- the expert

    def expert_action(self) -> str:
        """Return the first command of a shortest plan that wins from here.

        Raises:
            NotImplementedError: If the game's rules are not among the known ones.
            EpisodeOverError: If no episode runs.
            NoPlan: If the goal cannot be reached any more.
        """
        return self._expert_plan()[0]

    def expert_thought(self) -> str:
        """Return why the expert's next command is the right one, in a sentence."""
        commands, house = self._expert_plan(), self._engine.house
        assert house is not None
        return thought(house, commands)

    def _expert_plan(self) -> list[str]:
        if not self._running:
            raise EpisodeOverError("the expert needs a running episode: call reset() first")
        house = self._engine.house
        if house is None:
            raise NotImplementedError("ALFWorldEnv has no expert for games with rules it does not know")
        if not self._plan:
            self._plan = plan(house)
        return self._plan


@lru_cache(maxsize=16)
def _settings(
    task_types: tuple[str, ...], rooms: tuple[str, ...], num_receptacles: int | None, num_objects: int | None
) -> Settings:
    """Return the settings, tried out once for all environments that have them."""
    return Settings(task_types, rooms, num_receptacles, num_objects)


def _checked_types(task_types: Sequence[str] | None) -> tuple[str, ...]:
    """Return the kinds of task in the benchmark's order."""
    if task_types is None:
        return TASK_TYPES
    if isinstance(task_types, str) or not task_types:
        raise ConfigError(f"task_types must be a list of kinds of task, got {task_types!r}")
    for kind in task_types:
        if kind not in TASK_TYPES:
            raise UnknownNameError("task_type", kind, TASK_TYPES, "ALFWorldEnv")
    return tuple(kind for kind in TASK_TYPES if kind in task_types)
