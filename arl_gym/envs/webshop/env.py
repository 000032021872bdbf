"""WebShop: observations, rewards, info keys, the expert, and the card of the environment."""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from arl_gym.core import NumberedIds, Outcome, TextEnv, Unicode, check_count
from arl_gym.envs.webshop.goal import Goal
from arl_gym.envs.webshop.oracle import Advice, next_action
from arl_gym.envs.webshop.session import Session
from arl_gym.envs.webshop.tasks import Tasks, content_hash, open_tasks
from arl_gym.errors import ConfigError, DependencyMissing, EpisodeOverError, UnknownNameError
from arl_gym.rng import digest

if TYPE_CHECKING:
    from arl_gym.envs.webshop.browser_session import BrowserSession

Dataset = Literal["generated", "original"]
ObsMode = Literal["text", "text_rich", "html", "url", "image", "both"]
Frontend = Literal["text", "browser"]

_LEAST_PX, _MOST_PX = 200, 4000
RewardMode = Literal["sparse10", "score"]


class WebShopEnv(TextEnv):
    """WebShop: buy in a web store what an instruction describes.

    ## Task
    A shop of thousands of products. The instruction names a kind of product, some of its attributes, options
    such as colour and size, and a price: "i need a pair of waterproof hiking boots in brown, size 9, and
    price lower than 80.00 dollars". Search, look at products, choose options, buy one.

    ## Observation
    The page as the original's `text` mode shows it, byte for byte: its visible texts joined by " [SEP] ".
    `obs_mode` gives other readings of the same page.

    | obs_mode | what it is |
    |---|---|
    | text | the visible texts of the page |
    | text_rich | one a line, buttons and options marked, with what has been clicked |
    | html | the page itself |
    | url | its address |
    | image | with `frontend="browser"`: a screenshot, uint8 of shape (height, width, 3) |
    | both | a dict of "text" and "image" |

        Instruction: [SEP] find me … [SEP] Back to Search [SEP] Page 1 (Total results: 50) [SEP] Next > …

    ## Action
    One search or click as text.

    | action | what it does |
    |---|---|
    | `search[red shoes]` | on any page: the best 50 products for these words, ten a page |
    | `click[next >]`, `click[< prev]` | the page of results beside; back to the product or the results |
    | `click[b01lm6w7z6]` | open a product of the results |
    | `click[x-large]` | choose an option value; another one of the same group replaces it |
    | `click[size: x-large]` | the same, where two groups have the value or a button is called so |
    | `click[description]`, `click[features]`, `click[reviews]` | read more about the product |
    | `click[back to search]` | the search page; forgets what was found and chosen |
    | `click[buy now]` | buy, which ends the episode |

    Any other string is a step in which nothing happens, with `action_valid` False. Words are compared in
    lower case; a query is read up to its 2,000th character. Going back from a product to the results drops
    the chosen options, as in the original. Where there are screenshots, `scroll[down]` and `scroll[up]` show
    the rest of a long page, and with `set_of_marks` `click[#7]` clicks what is labelled 7.

    ## Reward
    | event | reward |
    |---|---|
    | a purchase with a score of exactly 1 | +10 |
    | any other step | 0 |

    `reward_mode="score"` gives the score of the purchase. The score is the original's: r_type × (attributes
    the product has + options that are chosen + price within the bound) / (attributes + options asked for +
    1).

    ## Episode end
    Terminated by buying; truncated after `max_steps` actions (15).

    ## Info
    The keys of every environment, `score` being the score of the purchase (0 before), and

    - `page` (str): "search", "results", "item", "description", "features", "reviews", "attributes" or "done".
    - `selected_options` (dict): chosen value by group.
    - `reward_details` (dict): the parts of the score under the original's names (`r_type`, `r_att`,
      `r_option`, `r_price`, `w_att`, …); empty before the purchase.
    - `title_tagger` (str): what found the nouns of the titles, which `r_type` compares.

    `admissible_actions` lists what can be clicked; on the search page it is the search for the instruction.

    ## Reset options
    `{"task_id": id}`: `train-000000` and so on; with the original data `human-001500` or `synthetic-000007`,
    the number being the goal's place in the original's order (`fixed_1500`). `{"goal_index": 7}`: the task of
    this number. `{"instruction": text}`: the first task with this instruction.

    ## Arguments
    - `dataset`: "generated" (default, nothing to download) or "original": the benchmark's product files, from
      `data_dir`, else the folder in `ARL_WEBSHOP_DATA`; see `arl-gym data import webshop`. An exported
      catalogue that is read so is still called "generated" in the infos.
    - `split`: "train", "val", "test" or "test_ood"; of the original data "train", "eval" (or "val") and
      "test".
    - `num_products`: of a generated catalogue (5,000), or the first so many of the original's file (all).
    - `catalogue`: "full", or "mini": few words and short pages, for tiny models (`num_products` to 10,000).
    - `num_tasks`: only the first so many tasks of the split; None is all.
    - `goals`, `split_mode`, `nouns`: for the original data, "human" or "synthetic" goals; splits of the
      "paper" (test 0-499, eval 500-1499, train from 1500) or of "verl_agent" (val 0-499, train from 500);
      nouns found by "spacy" (extra `nouns`) or by a "heuristic", which scores differently.
    - `results_per_page` (10); `show_attributes` (False): the page of attributes; `hide_empty_next` (False):
      no "Next >" after the last result.
    - `mark_clicked` (False): chosen options and products that were opened are marked in `text`.
    - `number_results` (False): results are named by their place, `click[3]`, instead of their ids.
    - `compat` (False): parse actions and name options with the original's quirks.
    - `max_steps` (15), `reward_mode` ("sparse10", "score"), `render_mode` ("ansi", "rgb_array", "human").
    - `frontend`: "text" (default), or "browser": the same shop as a site, in a headless Chromium of this
      environment (extra `browser`; Debian: `apt-get install chromium chromium-driver`; `ARL_CHROMIUM` and
      `ARL_CHROMEDRIVER` name the programs where they are not at a usual place). Texts, clickables, rewards
      and ends are the same step by step; `html` and `url` are the site's own, `rgb_array` is the window.
      With it go `site_url` (a running `arl-gym serve-webshop` of the same shop; None starts one on a free
      port of this machine), `screenshot_size` ((1280, 800), in pixels) and `set_of_marks` (False: numbered
      labels on what can be clicked). A browser that fails raises `BrowserError` from `step`, which vector
      envs and rollouts report as `env_error`; the next reset starts another.

    ## Determinism
    A task id with the same arguments is the same task and the same shop in every process and on every
    machine. Nothing is random after the reset.

    ## Data and licence
    The generated catalogue, its brands, reviews and goals are drawn by this package; nothing in it is for
    sale. It is not the benchmark: its scores compare with one another only. All splits shop in one catalogue;
    the products that their goals ask for are of different families, those of "test_ood" of categories that no
    other split asks for. The original data is read where you have it; none is shipped.

    ## Baselines
    On the 358 test tasks of the default catalogue (success with its 95% interval, mean score):

    | policy | success | score |
    |---|---|---|
    | search for the instruction, then click at random | 2.2 % [1.1, 4.3] | 0.27 |
    | search for the instruction, buy the first result as it is | 17.3 % [13.8, 21.6] | 0.70 |
    | the expert, which knows the product; 3.8 actions | 100 % [98.9, 100] | 1.00 |

    The other splits are alike. Nothing is known yet of trained agents; what papers report is of the original
    data.

    ## Version history
    - v0: first release.
    """

    reset_options = ("task_id", "goal_index", "instruction")

    def __init__(
        self,
        *,
        dataset: Dataset = "generated",
        split: str = "train",
        catalogue: str | None = None,
        num_products: int | None = None,
        num_tasks: int | None = None,
        data_dir: str | None = None,
        goals: str | None = None,
        split_mode: str | None = None,
        nouns: str | None = None,
        obs_mode: ObsMode = "text",
        results_per_page: int = 10,
        show_attributes: bool = False,
        hide_empty_next: bool = False,
        mark_clicked: bool = False,
        number_results: bool = False,
        compat: bool = False,
        max_steps: int = 15,
        reward_mode: RewardMode = "sparse10",
        frontend: Frontend = "text",
        site_url: str | None = None,
        screenshot_size: tuple[int, int] = (1280, 800),
        set_of_marks: bool = False,
        render_mode: str | None = None,
    ):
        super().__init__(dataset=dataset, split=split, max_steps=max_steps, render_mode=render_mode)
        for name, value, known in (
            ("obs_mode", obs_mode, get_args(ObsMode)),
            ("reward_mode", reward_mode, get_args(RewardMode)),
            ("frontend", frontend, get_args(Frontend)),
        ):
            if value not in known:
                raise UnknownNameError(name, value, known, "WebShopEnv")
        check_count("num_tasks", num_tasks)
        self._num_tasks = num_tasks
        self._tasks = open_tasks(
            dataset=dataset,
            catalogue=catalogue,
            num_products=num_products,
            data_dir=data_dir,
            goals=goals,
            split_mode=split_mode,
            nouns=nouns,
        )
        self.split = self._tasks.split_name(split)
        self.shop = self._tasks.store
        self.dataset = self.shop.dataset  # exported catalogues stay generated: they are not the benchmark
        options: dict[str, Any] = {
            "results_per_page": results_per_page,
            "show_attributes": show_attributes,
            "hide_empty_next": hide_empty_next,
            "mark_clicked": mark_clicked,
            "number_results": number_results,
            "compat": compat,
        }
        self._browser: BrowserSession | None = None
        if frontend == "browser":
            self._browser = _browser_session(
                self._tasks,
                size=_size(screenshot_size),
                pictures=obs_mode in ("image", "both") or render_mode == "rgb_array",
                marks=set_of_marks,
                site_url=site_url,
                options=options,
            )
        elif site_url is not None or set_of_marks or obs_mode in ("image", "both"):
            raise ConfigError(
                'site_url, set_of_marks and obs_mode "image" and "both" go with frontend="browser", '
                f"got site_url={site_url!r}, set_of_marks={set_of_marks}, obs_mode={obs_mode!r}"
            )
        self._session = self._browser or Session(self.shop, **options)
        self._look = self._looking(obs_mode)
        self._graded = reward_mode == "score"
        self._ids: dict[str, NumberedIds] = {}
        self.action_space = Unicode()
        self.observation_space = _space(obs_mode, screenshot_size)
        self.task_ids()  # a data set without tasks should say so now, not at the first reset

    def _looking(self, obs_mode: ObsMode) -> Callable[[], Any]:
        session, browser = self._session, self._browser
        if browser is None or obs_mode not in ("image", "both"):
            look: Callable[[], Any] = getattr(session, obs_mode)
            return look
        if obs_mode == "image":
            return browser.screenshot
        return lambda: {"text": session.text(), "image": browser.screenshot()}

    # ---- tasks

    def task_ids(self, split: str | None = None) -> NumberedIds:
        """Return the ids of a split, at most `num_tasks`.

        Raises:
            UnknownNameError: If the data set has no such split.
        """
        name = self._tasks.split_name(split or self.split)
        if name not in self._ids:
            self._ids[name] = self._tasks.ids(name, self._num_tasks)
        return self._ids[name]

    def goal(self, task_id: str) -> Goal:
        """Return what a task asks for, of any split.

        Raises:
            UnknownNameError: If there is no such task.
        """
        return self._tasks.goal(task_id)

    def _pool(self, options: Mapping[str, Any]) -> Sequence[str]:
        ids = self.task_ids()
        if "goal_index" in options:
            chosen = ids.of(operator.index(options["goal_index"]))
            if chosen not in ids:
                known = [ids[0], "…", ids[-1]]
                raise UnknownNameError("goal_index", options["goal_index"], known, f"split {self.split!r}")
            return [chosen]
        if "instruction" in options:
            text = options["instruction"]
            found = next((i for i in ids if self._tasks.goal(i).instruction == text), None)
            if found is None:
                raise ConfigError(f"no task of split {self.split!r} has the instruction {text!r}")
            return [found]
        return ids

    def _begin(self, task_id: str) -> None:
        self._goal = self._tasks.goal(task_id)
        self._hash = content_hash(self.shop, self._goal)
        self._session.begin(self._goal, task_id)

    # ---- one step

    def _apply(self, action: str) -> Outcome:
        valid = self._session.act(action)
        bought = self._session.reward
        if bought is None:
            return Outcome(reward=0.0, terminated=False, valid=valid)
        reward = bought.total if self._graded else 10.0 * bought.perfect
        return Outcome(reward=reward, terminated=True, valid=valid)

    # ---- what is seen

    def _observation(self) -> Any:
        return self._look()

    def _task(self) -> str:
        return self._goal.instruction

    def _content_hash(self) -> str:
        return self._hash

    def _success(self) -> bool:
        bought = self._session.reward
        return bought is not None and bought.perfect

    def _score(self) -> float:
        bought = self._session.reward
        return 0.0 if bought is None else bought.total

    def _state_key(self) -> str:
        return digest(f"{self._hash}{self._session.key()}")

    def _admissible(self) -> list[str]:
        session = self._session
        scrolls = [] if self._browser is None else self._browser.scrolls()
        if session.has_search_bar:
            return [f"search[{self._goal.instruction}]", *scrolls]
        return [*(f"click[{name}]" for name in session.clickables()), *scrolls]

    def _extra_info(self) -> dict[str, Any]:
        session = self._session
        bought = session.reward
        return {
            "page": session.page,
            "selected_options": dict(session.selected),
            "reward_details": {} if bought is None else bought.details(),
            "title_tagger": self.shop.tagger,
        }

    def _ansi(self) -> str:
        return self._session.text_rich()

    def _rgb(self) -> npt.NDArray[np.uint8]:
        return super()._rgb() if self._browser is None else self._browser.screenshot()

    def close(self) -> None:
        """End the browser and the site; a second call does nothing."""
        self._running = False
        if self._browser is not None:
            self._browser.close()
        super().close()

    # ---- the expert

    def expert_action(self) -> str:
        """Return the next action of a shortest visit that buys the goal's product.

        Raises:
            EpisodeOverError: If no episode runs.
        """
        return self._advice().action

    def expert_thought(self) -> str:
        """Return why the expert does what it does next.

        Raises:
            EpisodeOverError: If no episode runs.
        """
        return self._advice().thought

    def _advice(self) -> Advice:
        if not self._running:
            raise EpisodeOverError("the expert needs a running episode: call reset() first")
        return next_action(self._session, self._goal, self.shop)


def _size(size: Sequence[int]) -> tuple[int, int]:
    if len(size) != 2 or not all(isinstance(n, int) and _LEAST_PX <= n <= _MOST_PX for n in size):
        raise ConfigError(
            f"screenshot_size must be width and height of {_LEAST_PX} to {_MOST_PX} pixels, got {size!r}"
        )
    return size[0], size[1]


def _space(obs_mode: ObsMode, size: Sequence[int]) -> gym.Space[Any]:
    image = gym.spaces.Box(0, 255, (size[1], size[0], 3), np.uint8)
    if obs_mode == "both":
        return gym.spaces.Dict({"text": Unicode(), "image": image})
    return image if obs_mode == "image" else Unicode()


def _browser_session(
    tasks: Tasks,
    *,
    size: tuple[int, int],
    pictures: bool,
    marks: bool,
    site_url: str | None,
    options: Mapping[str, Any],
) -> "BrowserSession":
    try:
        from arl_gym.envs.webshop.browser_session import BrowserSession, Window
    except ModuleNotFoundError as err:
        raise DependencyMissing('WebShop(frontend="browser")', "browser") from err
    window = Window(size=size, pictures=pictures, marks=marks)
    return BrowserSession(tasks, window=window, site_url=site_url, **options)
