r"""TIR-Math: turns, programs and their output, rewards, the expert, and the card of the environment."""

import json
from collections.abc import Sequence
from typing import Any, Literal, get_args

from arl_gym.core import NumberedIds, Outcome, TextEnv, Unicode, check_count
from arl_gym.envs.tirmath.grading import GRADER_VERSION, Grader, Verdict, extract_boxed, shared_grader
from arl_gym.envs.tirmath.problems.problem import Problem
from arl_gym.envs.tirmath.sandbox import Execution, RemoteSandbox, Sandbox, open_sandbox, shared_sandbox
from arl_gym.envs.tirmath.tasks import open_problems
from arl_gym.envs.tirmath.turn import ParsedTurn, parse_turn, shorten
from arl_gym.errors import EpisodeOverError, SandboxError, UnknownNameError
from arl_gym.rng import derive, digest

OnVoid = Literal["terminate", "continue", "penalize"]
State = Literal["fresh", "replayed"]
Errors = Literal["last_line", "full"]

VOID_PENALTY = 0.1
"""What a turn without program and answer costs with on_void="penalize"."""
STOP = ("```\nCode execution", "```\n\nCode execution", "```output")
"""Where a model begins to make up the output of its program."""

_FINAL_ANSWER = r"""
def final_answer(answer):
    print("\\boxed{" + str(answer) + "}")
"""
_REPLAY = """
import contextlib, io
with contextlib.redirect_stdout(io.StringIO()):
    for _program in {programs!r}:
        exec(compile(_program, "<earlier>", "exec"), globals())
del contextlib, io, _program
"""
_CHOICES = {"on_void": OnVoid, "state": State, "errors": Errors}


class TIRMathEnv(TextEnv):
    r"""TIR-Math: solve a mathematics problem by thinking and writing programs.

    ## Task
    A question with one answer. In each turn the agent thinks, and may write one Python program, whose output
    it then sees; it ends by giving the answer in a box.

    ## Observation
    First the question; after a turn with a program what that printed, as "Code execution result: 4". Of
    a program that writes to stderr, it is the last line of that; a long output loses its middle.

    ## Action
    The whole text of the agent's turn.

    | part of the text | what it does |
    |---|---|
    | a block of Python: three backticks and "python", a program, three backticks | the first one is run, in a fresh process without network and files |
    | what follows the first block | nothing: it is dropped |
    | `\boxed{answer}` before it, or without a program | answers, and ends the episode |
    | `final_answer(x)` in a program, or a box that it prints | the same |
    | neither program nor box | a void turn, which ends the episode |

    ## Reward
    | event | reward |
    |---|---|
    | the answer is right | +1 |
    | anything else | 0 |

    The last box counts. An answer is right if it equals the reference answer as mathematics; how that is
    decided stands in `arl_gym.envs.tirmath.grading`. Without a box nothing is right.

    ## Episode end
    Terminated by an answer or a void turn; truncated after `max_steps` turns (5), whose last program still
    runs.

    ## Info
    The keys of every environment, `action_valid` being False for a void turn, and

    - `void_turn` (bool): whether the turn had neither program nor box.
    - `execution` (str): how the program ended, "ok", "error", "timeout", "memory", "output_limit" or
      "killed"; empty where none ran. A failure of the sandbox itself is raised as `SandboxError`.
    - `queue_ms`, `run_ms` (float): how long the program waited, and ran.
    - `parsed_action` (str): the text that counted, up to the end of the program; `consumed` (int) is its
      length in the action.
    - `answer` (str): what stood in the box; `graded` (str): what decided about it, "timeout" if nothing did
      in time.
    - `sandbox`, `grader` (str): the tier that holds programs, and the grader's version.
    - `stop` (list): texts after which nothing is read: the trainer's policies stop generating there.
    - `task_type` (str): the family or subject; `level` (int).

    ## Reset options
    `{"task_id": id}`: `train-000000` and so on.

    ## Arguments
    - `dataset`: "generated" (default: 15 and more families of problems at five levels, made by this package),
      or "original": the problems of a file, jsonl, json or parquet, from `data`, else from
      `ARL_TIRMATH_DATA`; a file is one split, of the name that `split` gives it.
    - `split`: "train", "val", "test" or "test_ood" (families that no other split has).
    - `families`, `levels`: which of the generated problems (all); `num_tasks`: only the first so many.
    - `sandbox`: "auto" (the best tier that holds on this machine), "namespace", "landlock", a URL of
      `arl-gym serve-sandbox`, or "unsafe": no isolation but limits. Without a tier that holds, "auto" refuses.
    - `timeout_s` (3.0), `memory_mb` (512): of one program; a remote sandbox has its own. The time is the
      clock's: where other work keeps the cores busy, choose more.
    - `on_void`: "terminate" (default), "continue", or "penalize": goes on, at a cost of 0.1.
    - `state`: "fresh" (default), or "replayed": the programs that ended well are run again before the next
      one, without their output, so that names stay defined.
    - `errors`: "last_line" (default), or "full": stdout and the whole traceback.
    - `max_output_chars` (512); `hint_silent` (False): say that nothing was printed; `final_answer` (True):
      whether that function exists and a printed box counts.
    - `max_steps` (5), `render_mode` ("ansi", "rgb_array", "human").

    ## Determinism
    A task id with the same arguments is the same problem everywhere. `random` and `numpy.random` start from a
    seed of task and turn. Time and memory limits depend on the machine.

    ## Data and licence
    The generated problems are this package's own; each was checked by its reference program. Files of others
    are read where you have them; none is shipped.

    ## Baselines
    On the 500 test problems (success with its 95% interval):

    | policy | success |
    |---|---|
    | a fixed answer, `\boxed{0}`, or nothing of use | 0 % [0.0, 0.8] |
    | the expert: the reference program, then its output; 2 turns | 100 % [99.2, 100] |

    Nothing is known yet of trained agents; what papers report is of MATH, AIME and their like.

    ## Version history
    - v0: first release.
    """  # noqa: E501 - rows of the tables

    def __init__(
        self,
        *,
        dataset: str = "generated",
        split: str = "train",
        families: Sequence[str] | None = None,
        levels: Sequence[int] | None = None,
        data: str | None = None,
        num_tasks: int | None = None,
        sandbox: str = "auto",
        timeout_s: float = 3.0,
        memory_mb: int = 512,
        on_void: OnVoid = "terminate",
        state: State = "fresh",
        errors: Errors = "last_line",
        max_output_chars: int = 512,
        hint_silent: bool = False,
        final_answer: bool = True,
        max_steps: int = 5,
        render_mode: str | None = None,
    ):
        super().__init__(dataset=dataset, split=split, max_steps=max_steps, render_mode=render_mode)
        for name, value in (("on_void", on_void), ("state", state), ("errors", errors)):
            if value not in get_args(_CHOICES[name]):
                raise UnknownNameError(name, value, get_args(_CHOICES[name]), "TIRMathEnv")
        check_count("num_tasks", num_tasks)
        check_count("max_output_chars", max_output_chars)
        self._problems = open_problems(dataset, split, families=families, levels=levels, data=data)
        self._num_tasks = num_tasks
        self._on_void, self._replays, self._full_errors = on_void, state == "replayed", errors == "full"
        self._max_output_chars, self._hint_silent = max_output_chars, hint_silent
        self._final_answer = final_answer
        self._sandbox = _open_sandbox(sandbox, timeout_s, memory_mb)
        self.score_settings = {"grader": GRADER_VERSION, "max_steps": max_steps}
        self._grader: Grader = shared_grader()
        self.observation_space, self.action_space = Unicode(), Unicode()
        self.task_ids()  # a data set without tasks should say so now, not at the first reset

    # ---- tasks

    def task_ids(self, split: str | None = None) -> NumberedIds:
        """Return the ids of a split, at most `num_tasks`.

        Raises:
            UnknownNameError: If the data set has no such split.
            ConfigError: If the split is empty.
        """
        return self._problems.ids(split or self.split, self._num_tasks)

    def _begin(self, task_id: str) -> None:
        self._problem: Problem = self._problems.problem(task_id)
        self._hash = digest(json.dumps([self._problem.question, self._problem.answer]))
        self._number = derive("tirmath", self._hash)
        self._seen = self._problem.question
        self._history: list[str] = []
        self._programs: list[str] = []
        self._parsed = ParsedTurn("", "", None)
        self._execution: Execution | None = None
        self._box: str | None = None
        self._verdict: Verdict | None = None
        self._void = False

    # ---- one turn

    def _apply(self, action: str) -> Outcome:
        self._parsed = parse_turn(action)
        self._execution = None if self._parsed.code is None else self._run(self._parsed.code)
        printed = self._execution.stdout if self._execution and self._final_answer else ""
        self._box = extract_boxed(self._parsed.prose + "\n" + printed)
        self._void = self._execution is None and self._box is None
        self._seen = self._shown()
        self._history += [self._parsed.kept, self._seen]
        if self._box is not None:
            self._verdict = self._grader.check(self._problem.answer, self._box)
            return Outcome(reward=float(self._verdict.equal), terminated=True, valid=True)
        reward = -VOID_PENALTY if self._void and self._on_void == "penalize" else 0.0
        return Outcome(
            reward=reward, terminated=self._void and self._on_void == "terminate", valid=not self._void
        )

    def _run(self, code: str) -> Execution:
        prelude = _FINAL_ANSWER if self._final_answer else ""
        if self._replays and self._programs:
            prelude += _REPLAY.format(programs=self._programs)
        seed = (self._number + self._n_steps) % (1 << 32)
        execution = self._sandbox.run(code, seed=seed, prelude=prelude)
        if execution.status == "sandbox_error":
            raise SandboxError(f"the sandbox failed to run a program of {self._task_id}: {execution.stderr}")
        if execution.status == "ok":
            self._programs.append(code)
        return execution

    def _shown(self) -> str:
        if self._execution is None:
            if self._box is None and self._on_void != "terminate":
                return "Neither a Python block nor a \\boxed{} answer was found."
            return ""
        most = self._max_output_chars
        out, err = (shorten(text.strip("\n"), most) for text in (self._execution.stdout, self._stderr()))
        output = "\n".join(filter(None, (out, err))) if self._full_errors else err or out
        if not output and self._hint_silent:
            output = "(nothing was printed: use print())"
        return f"Code execution result: {output}"

    def _stderr(self) -> str:
        execution = self._execution
        assert execution is not None
        match execution.status:
            case "timeout":
                said = f"the program was stopped after {execution.run_ms / 1000:.1f} s"
            case "memory":
                said = "MemoryError: the program needs too much memory"
            case "output_limit":
                said = "the program was stopped: it printed too much"
            case "killed":
                said = f"the program was ended by signal {-(execution.returncode or 0)}"
            case _:
                text = execution.stderr.strip("\n")
                return text if self._full_errors else text.rpartition("\n")[2]
        return said

    # ---- what is seen

    def _observation(self) -> str:
        return self._seen

    def _task(self) -> str:
        return self._problem.question

    def _content_hash(self) -> str:
        return self._hash

    def _success(self) -> bool:
        return self._verdict is not None and self._verdict.equal

    def _score(self) -> float:
        return float(self._success())

    def _state_key(self) -> str:
        return digest(json.dumps([self._hash, *self._history]))

    def _extra_info(self) -> dict[str, Any]:
        execution, verdict = self._execution, self._verdict
        return {
            "void_turn": self._void,
            "execution": execution.status if execution else "",
            "queue_ms": execution.queue_ms if execution else 0.0,
            "run_ms": execution.run_ms if execution else 0.0,
            "parsed_action": self._parsed.kept,
            "consumed": len(self._parsed.kept),
            "answer": self._box or "",
            "graded": verdict.how if verdict else "",
            "sandbox": self._sandbox.tier,
            "grader": GRADER_VERSION,
            "stop": list(STOP),
            "task_type": self._problem.family,
            "level": self._problem.level,
        }

    def _ansi(self) -> str:
        return "\n".join([self._problem.question, *self._history])

    # ---- the expert

    def expert_action(self) -> str:
        """Return the reference program, and then the answer that it printed.

        Problems of files have no program: there it is the reference answer.

        Raises:
            EpisodeOverError: If no episode runs.
        """
        program = self._problem_in_play().program.strip()
        if not program:
            return f"\\boxed{{{self._problem.answer}}}"
        if self._has_run(program) and self._execution is not None:
            return f"\\boxed{{{self._execution.stdout.strip()}}}"
        return f"```python\n{program}\n```"

    def expert_thought(self) -> str:
        """Return why the expert does what it does next.

        Raises:
            EpisodeOverError: If no episode runs.
        """
        problem = self._problem_in_play()
        if not problem.thought or not self._has_run(problem.program.strip()):
            return problem.thought
        return "The program gives the answer."

    def _problem_in_play(self) -> Problem:
        if not self._running:
            raise EpisodeOverError("the expert needs a running episode: call reset() first")
        return self._problem

    def _has_run(self, program: str) -> bool:
        """Whether the last turn ran this program to its end."""
        ran = self._execution is not None and self._execution.status == "ok"
        return ran and (self._parsed.code or "").strip() == program


def _open_sandbox(where: str, timeout_s: float, memory_mb: int) -> Sandbox | RemoteSandbox:
    if "://" in where:
        return open_sandbox(where)
    return shared_sandbox(where, timeout_s=timeout_s, memory_mb=memory_mb)
