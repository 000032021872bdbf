"""The report of a run: one HTML file that needs no network, no script and no other file.

Reads `config.toml`, `metrics.jsonl`, `clone.jsonl`, `result.json` and `trajectories/` of the run folder. A
part whose file is missing or unreadable becomes a sentence that says so.

    write_report(Path("runs/default"))  # runs/default/report.html
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, TypeVar

from arl_gym.errors import ArlGymError, DataError
from arl_gym.train.canvas import Drawing, render
from arl_gym.train.files import write_atomically
from arl_gym.train.gallery import Shown, curve_drawings, details
from arl_gym.train.metrics import Row
from arl_gym.train.pages import style
from arl_gym.train.recordings import message_text, recording_paths
from arl_gym.train.result import Difference, Rate, Result, ResultRow, read_result
from arl_gym.train.runs import Run, differing_settings, env_ids, group_runs, load_runs
from arl_gym.train.stability import describe_stability, stability
from arl_gym.train.tables import Table, group_table, run_table, shown
from arl_gym.wrappers import load_episodes

T = TypeVar("T")

_TIMES = {"generate": "Generation", "envs": "Environments", "score": "Scoring", "update": "Update"}
_AN_EVALUATION = "eval/success_rate"

# ---- the two reports


def write_report(run_dir: Path, out: Path | None = None, *, how: Shown | None = None) -> Path:
    """Write the report of one run and return its path.

    Args:
        run_dir: The run folder.
        out: The page; None: `report.html` in the run folder.
        how: How its curves are shown.

    Raises:
        DataError: If `run_dir` is no folder.
        ArlGymError: If the report cannot be written.
    """
    (run,) = load_runs([run_dir])
    config, result = _known(run)
    method, env_id = _method(config, result), _env_id(config, result)
    sections = [
        _section("Success", lambda: _success_of(run, method)),
        _section("Curves", lambda: _curves({method: [run]}, how) + _steadiness(run)),
        _section("Alarms", lambda: _alarms(run)),
        _section("Where the time went", lambda: _time_shares(run.rows)),
        *(_section(title, partial(_drawn, draw)) for title, draw in details(run)),
        _section("Sample episodes", lambda: _episodes(run)),
        _section("Configuration", lambda: _config_text(run)),
    ]
    rows = _quiet(lambda: run.rows) or []
    header = f'<p class="verdict">{escape(_verdict(result, rows))}</p>{_facts(config, result)}'
    page = _page(f"{method} on {env_id}", header, sections)
    return _write(page, out or run.folder / "report.html")


def compare_report(
    run_dirs: Sequence[Path], out: Path, *, group_by: str | None = None, how: Shown | None = None
) -> Path:
    """Write one report over several runs, their curves over each other; return its path.

    Args:
        run_dirs: The run folders.
        out: The page.
        group_by: A setting, as "method" or "loss.clip_low": runs of equal value are one line in the curves,
            their mean, and one row of a table.
        how: How the curves are shown.

    Raises:
        ConfigError: If no run is given, or a configuration cannot be read to group by it.
        DataError: If one of `run_dirs` is no folder.
        ArlGymError: If the report cannot be written.
    """
    runs = load_runs(run_dirs)
    lines = group_runs(runs, group_by) if group_by else {run.label: [run] for run in runs}

    def success() -> str:
        evaluated = {r.label: r.folder for r in runs if (r.folder / "result.json").exists()}
        if not evaluated:
            raise DataError("none of the runs has a result.json; the evaluations during training are below")
        without = [r.label for r in runs if r.label not in evaluated]
        note = f'<p class="missing">Without result.json: {escape(", ".join(without))}.</p>' if without else ""
        return note + _success({label: read_result(d / "result.json") for label, d in evaluated.items()})

    sections = [
        _section("Success", success),
        _section("Numbers", lambda: _numbers(runs, lines if group_by else {})),
        _section("Curves", lambda: _curves(lines, how)),
        *(_section(title, partial(_figures_of, runs, i)) for i, (title, _) in enumerate(details(runs[0]))),
        _section("What differs", lambda: _config_differences({r.label: r.settings for r in runs})),
    ]
    datasets = {_dataset(*_known(run)) for run in runs}
    header = (
        f'<p class="verdict">{escape(", ".join(r.label for r in runs))}</p>'
        f'<ul class="facts">{"".join(map(_dataset_fact, sorted(datasets)))}</ul>'
    )
    return _write(_page(f"{len(runs)} runs compared", header, sections), out)


def _write(page: str, out: Path) -> Path:
    # A lone surrogate in a model's text must not cost the report.
    write_atomically(out, page.encode("utf-8", errors="replace"))
    return out


def _page(title: str, header: str, sections: Sequence[str]) -> str:
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{style('report')}</style>\n</head>\n<body>\n<main>\n"
        f"<header>\n<h1>{escape(title)}</h1>\n{header}\n</header>\n" + "\n".join(sections) + "\n</main>\n"
        "</body>\n</html>\n"
    )


def _section(title: str, build: Callable[[], str]) -> str:
    try:
        body = build()
    except ArlGymError as err:
        body = f'<p class="missing">Left out: {escape(str(err))}.</p>'
    return f"<section>\n<h2>{escape(title)}</h2>\n{body}\n</section>"


def _quiet(build: Callable[[], T]) -> T | None:
    """Return None for a part that cannot be built; its own section says why."""
    try:
        return build()
    except ArlGymError:
        return None


# ---- header


def _known(run: Run) -> tuple[dict[str, Any] | None, Result | None]:
    return _quiet(lambda: run.config), _quiet(lambda: read_result(run.folder / "result.json"))


def _method(config: Mapping[str, Any] | None, result: Result | None) -> str:
    return result.method if result else str((config or {}).get("method", "A run"))


def _env_id(config: Mapping[str, Any] | None, result: Result | None) -> str:
    if result:
        return result.env_id
    ids = env_ids(config or {})
    return "an unnamed environment" if "?" in ids else ", ".join(dict.fromkeys(ids))


def _dataset(config: Mapping[str, Any] | None, result: Result | None) -> str:
    if result:
        return result.dataset
    config = config or {}
    kwargs = [env.get("kwargs", {}) for env in config.get("envs") or [config.get("env", {})]]
    names = dict.fromkeys(str(k.get("dataset", "generated")) for k in kwargs)
    # One generated environment is enough to make a score no benchmark's.
    return "generated" if "generated" in names else ", ".join(names)


def _facts(config: Mapping[str, Any] | None, result: Result | None) -> str:
    facts = [_dataset_fact(_dataset(config, result))]
    if result:
        facts += [f"<li>split {escape(result.split)}</li>", f"<li>content {escape(result.content_hash)}</li>"]
    seed = result.seed if result else (config or {}).get("seed")
    if seed is not None:
        facts.append(f"<li>seed {escape(str(seed))}</li>")
    return f'<ul class="facts">{"".join(facts)}</ul>'


def _dataset_fact(dataset: str) -> str:
    if dataset == "generated":
        return '<li class="warn">dataset generated: no benchmark score</li>'
    return f"<li>dataset {escape(dataset)}</li>"


def _verdict(result: Result | None, rows: Sequence[Row]) -> str:
    """Return one sentence: the paired difference, else the agent's rate, else the training curve."""
    if result and result.differences:
        own = [d for d in result.differences if d.a == result.method]
        return _difference_sentence((own or list(result.differences))[0], result)
    if result and result.rows:
        row = next((r for r in result.rows if r.name == result.method), result.rows[-1])
        return (
            f"{row.name} solves {row.greedy.rate:.2f} {_range(row.greedy)} of {_tasks(result, row)} greedily."
        )
    rates = [v for row in rows if (v := row.get("rollout/played_success_rate")) is not None]
    if not rates:
        return "Nothing has been measured yet."
    k = min(5, len(rates))
    first, last = math.fsum(rates[:k]) / k, math.fsum(rates[-k:]) / k
    sentence = (
        f"Success on the training tasks went from {first:.2f} to {last:.2f} in {len(rates)} steps "
        f"(means of the first and last {k}); "
    )
    seen = [(row["step"], v) for row in rows if (v := row.get(_AN_EVALUATION)) is not None]
    if not seen:
        return f"{sentence}nothing was evaluated."
    return f"{sentence}on the validation tasks it was {seen[-1][1]:.2f} at step {seen[-1][0]:.0f}."


def _difference_sentence(d: Difference, result: Result) -> str:
    a, b = result.row(d.a), result.row(d.b)
    before, after = f"{b.greedy.rate:.2f} ({d.b})", f"{a.greedy.rate:.2f}"
    if d.low > 0:
        change = f"raised greedy success from {before} to {after}"
    elif d.high < 0:
        change = f"lowered greedy success from {before} to {after}"
    else:
        change = f"did not clearly change greedy success: {before}, then {after}"
    return f"{d.a} {change} ({d.mean:+.2f} [{d.low:+.2f}, {d.high:+.2f}]) on {_tasks(result, a)}."


def _tasks(result: Result, row: ResultRow) -> str:
    kind = "training" if result.split == "train" else "unseen"
    return f"{row.n} {kind} tasks"


# ---- success


def _range(rate: Rate) -> str:
    return f"[{rate.low:.2f}, {rate.high:.2f}]"


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _whisker(rate: Rate) -> str:
    return (
        '<svg class="whisker" viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true" '
        'stroke="currentColor" fill="none"><path d="M0 6H100" stroke-opacity=".2"/>'
        f'<path d="M{100 * rate.low:.1f} 6H{100 * rate.high:.1f}" stroke-width="3" stroke-opacity=".5"/>'
        f'<path d="M{100 * rate.rate:.1f} 1V11" stroke-width="2"/></svg>'
    )


def _rate(rate: Rate | None) -> str:
    if rate is None:
        return "<td>–</td>"
    return f"<td>{rate.rate:.2f} <small>{_range(rate)}</small>{_whisker(rate)}</td>"


def _success_of(run: Run, method: str) -> str:
    """Show what was measured after the run, else the evaluations during it."""
    if (run.folder / "result.json").exists():
        return _success({method: read_result(run.folder / "result.json")})
    seen = [row for row in run.rows if _AN_EVALUATION in row]
    if not seen:
        raise DataError(f"{run.label} has no result.json and no evaluation (eval.every)")
    names = [n.removeprefix("eval/success_rate_") for n in seen[-1] if n.startswith("eval/success_rate_")]
    keys = {"all tasks": _AN_EVALUATION} | {name: f"{_AN_EVALUATION}_{name}" for name in names}
    values = [[row.get(key) for row in seen] for key in keys.values()]
    table = Table(
        columns=("tasks", "first", "best", "last"),
        rows=[
            (name, of[0], max((v for v in of if v is not None), default=None), of[-1])
            for name, of in zip(keys, values, strict=True)
        ],
    )
    steps = f"step {seen[0]['step']:.0f} to step {seen[-1]['step']:.0f}"
    several = f"; {len(env_ids(run.config))} environments count alike" if run.config.get("envs") else ""
    return _table(table, f"Share of validation tasks solved, {steps}{several}.", look="narrow")


def _success(results: Mapping[str, Result]) -> str:
    several = len(results) > 1
    body = []
    for label, result in results.items():
        for row in result.rows:
            name = f"{label}: {row.name}" if several else row.name
            body.append(
                f'<tr><th scope="row">{escape(name)}</th>{_rate(row.greedy)}{_rate(row.sampled)}'
                f"<td>{row.n}</td><td>{_number(row.return_mean, '.2f')}</td>"
                f"<td>{_number(row.turns_mean, '.1f')}</td><td>{_number(row.valid_format, '.2f')}</td>"
                f"<td>{_number(row.seconds, '.1f')}</td></tr>"
            )
    names = ("Greedy success", "Sampled success", "Tasks", "Return", "Turns", "Valid format", "Seconds")
    columns = "".join(f'<th scope="col">{name}</th>' for name in ("Agent", *names))
    sets = {(r.env_id, r.dataset, r.split, r.content_hash) for r in results.values()}
    warning = ""
    if len(sets) > 1:
        warning = (
            '<p class="bad">The runs were evaluated on different tasks: their scores do not compare.</p>'
        )
    return (
        f'{warning}<div class="scroll" tabindex="0" role="region" aria-label="Success table"><table><caption>'
        f"Share of tasks solved, with confidence intervals, on {_sets(sets)}. "
        "Return before penalties and turns are means per episode, valid format is a share of turns.</caption>"
        f"<thead><tr>{columns}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
        f"{_differences(results)}"
    )


def _sets(sets: set[tuple[str, str, str, str]]) -> str:
    return "; ".join(
        escape(f"{env_id}, dataset {dataset}, split {split}") for env_id, dataset, split, _ in sorted(sets)
    )


def _differences(results: Mapping[str, Result]) -> str:
    sentences = [
        (f"{label}: " if len(results) > 1 else "") + _difference_sentence(d, result)
        for label, result in results.items()
        for d in result.differences
    ]
    items = [f"<li>{escape(sentence)}</li>" for sentence in sentences]
    return f"<h3>Paired differences on the same tasks</h3><ul>{''.join(items)}</ul>" if items else ""


# ---- numbers, figures and time


def _numbers(runs: Sequence[Run], groups: Mapping[str, Sequence[Run]]) -> str:
    parts = []
    if groups:
        parts.append(
            _table(group_table(groups), "Means over the runs of a group ± their standard deviation.")
        )
        for label, members in groups.items():
            if odd := differing_settings(members):
                parts.append(
                    f'<p class="bad">The runs of {escape(label)} differ in more than their seed: '
                    f"{escape(', '.join(odd))}.</p>"
                )
    caption = "Final and best are means of five steps, maxima and sums are over the whole run."
    return "".join([*parts, _table(run_table(runs), caption)])


def _table(table: Table, caption: str, look: str = "") -> str:
    head = "".join(f'<th scope="col">{escape(c.replace("_", " "))}</th>' for c in table.columns)
    body = "".join(
        f'<tr><th scope="row">{escape(shown(row[0]))}</th>'
        + "".join(f"<td>{escape(shown(cell))}</td>" for cell in row[1:])
        + "</tr>"
        for row in table.rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table class="{look}"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _curves(lines: Mapping[str, Sequence[Run]], how: Shown | None) -> str:
    how = how or Shown()
    figures = _grid(curve_drawings(lines, how))
    notes = []
    if (smooth := how.width(lines)) > 1:
        notes.append(f"Bold: mean of the last {smooth} steps.")
    if any(len(runs) > 1 for runs in lines.values()):
        notes.append(
            "Lines of several runs: their mean and its 95% bootstrap band; dotted where not all have a value."
        )
    return figures + (f'<p class="note">{" ".join(notes)}</p>' if notes else "")


def _steadiness(run: Run) -> str:
    s = stability(run.rows)
    return f"<p>{escape(describe_stability(s))}</p>" if s else ""


def _alarms(run: Run) -> str:
    if not run.alarms:
        return '<p class="note">None: every metric stayed within the limits of [monitor].</p>'
    items = "".join(f"<li>Step {step}: {escape(alarm.text)}</li>" for step, alarm in run.alarms)
    return f'<ul class="bad">{items}</ul>'


def _grid(drawings: Sequence[Drawing], look: str = "charts") -> str:
    figures = "".join(
        f'<div role="img" aria-label="{escape(d.text)}">{render(d, "svg").decode()}</div>' for d in drawings
    )
    return f'<div class="{look}">{figures}</div>'


def _drawn(draw: Callable[[], list[Drawing]]) -> str:
    try:
        return _grid(draw(), "charts wide")
    except DataError as err:
        return _nothing([str(err)])


def _nothing(reasons: Sequence[str]) -> str:
    return f'<p class="missing">Nothing to show: {escape("; ".join(reasons))}.</p>'


def _figures_of(runs: Sequence[Run], which: int) -> str:
    """Show one kind of figure of every run, and say in a sentence which runs lack it."""
    parts, missing = [], []
    for place, run in enumerate(runs):
        try:
            drawings = details(run)[which][1]()
        except DataError as err:
            missing.append(str(err))
            continue
        # Figures of one name would share ids.
        own = [dataclasses.replace(d, name=f"{d.name}-{place}") for d in drawings]
        parts.append(f"<h3>{escape(run.label)}</h3>{_grid(own, 'charts wide')}")
    if missing:
        parts.append(_nothing(missing))
    return "".join(parts)


def _time_shares(rows: Sequence[Row]) -> str:
    def total(name: str) -> float:
        return math.fsum(row.get(f"time/{name}_s") or 0.0 for row in rows)

    parts = {label: total(name) for name, label in _TIMES.items()}
    if not any("time/generate_s" in row for row in rows):
        parts = {"Rollout": total("rollout")} | {k: parts[k] for k in ("Scoring", "Update")}
    whole = max(total("step"), math.fsum(parts.values()))
    if whole <= 0:
        raise DataError("metrics.jsonl has no timings")
    parts["Rest"] = whole - math.fsum(parts.values())
    bars = "".join(
        f'<div class="t{i}" style="width:{100 * s / whole:.2f}%"></div>' for i, s in enumerate(parts.values())
    )
    body = "".join(
        f'<tr><th scope="row"><span class="key t{i}" aria-hidden="true"></span>{label}</th>'
        f"<td>{seconds:.1f}</td><td>{100 * seconds / whole:.0f} %</td></tr>"
        for i, (label, seconds) in enumerate(parts.items())
    )
    outside = ""
    if any("time/overhead_s" in row for row in rows):
        share = 100 * total("overhead") / whole
        outside = f'<p class="note">Outside the model and the environments: {share:.1f} % of the time.</p>'
    return (
        f'<div class="share" aria-hidden="true">{bars}</div>'
        f'<table class="narrow"><caption>Seconds of the {whole:.0f} s that the training steps took.</caption>'
        '<thead><tr><th scope="col">Part</th><th scope="col">Seconds</th>'
        f'<th scope="col">Share</th></tr></thead><tbody>{body}</tbody></table>{outside}'
    )


# ---- episodes


def _episodes(run: Run) -> str:
    path = list(recording_paths(run.folder).values())[-1]
    found: dict[bool, dict[str, Any]] = {}
    for record in load_episodes(path):
        found.setdefault(bool(record["success"]), record)
        if len(found) == 2:
            break
    try:
        shown = [
            _episode(found[success])
            if success in found
            else f'<p class="missing">No {word} in {escape(path.name)}.</p>'
            for success, word in ((True, "success"), (False, "failure"))
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as err:
        raise DataError(f"cannot show the episodes of {path.name}: {type(err).__name__} {err}") from err
    return f'<p class="note">First success and first failure of {escape(path.name)}.</p>' + "".join(shown)


def _episode(record: Mapping[str, Any]) -> str:
    word, look = ("Success", "good") if record["success"] else ("Failure", "bad")
    turns = record["turns"]
    head = f"{record['task_id']}: {len(turns)} turns, score {float(record['score']):.2f}, {record['stop']}"
    return (
        f'<details><summary><span class="{look}">{word}</span> {escape(head)}</summary>'
        + "".join(_turn(k, turn) for k, turn in enumerate(turns, start=1))
        + "</details>"
    )


def _turn(k: int, turn: Mapping[str, Any]) -> str:
    # Later prompts repeat the instructions: their last message holds what is new.
    messages = turn["messages"] if k == 1 else turn["messages"][-1:]
    asked = "".join(_speech(str(m["role"]), message_text(m)) for m in messages)
    facts = f"action {turn['action']!r}, reward {float(turn['env_reward']):+.2f}"
    if not turn.get("format_valid", True):
        facts += ", format broken"
    if not turn.get("action_valid", True):
        facts += ", action not admissible"
    said = _speech("response", str(turn["response"]), look="said")
    return f'<h3>Turn {k}</h3>{asked}{said}<div class="who">{escape(facts)}</div>'


def _speech(who: str, text: str, look: str = "") -> str:
    return f'<div class="who">{escape(who)}</div><pre class="{look}" tabindex="0">{escape(text)}</pre>'


# ---- configuration


def _config_text(run: Run) -> str:
    _ = run.config  # a file that does not parse is not shown as the configuration
    text = (run.folder / "config.toml").read_text(encoding="utf-8")
    return (
        "<details><summary>config.toml, which runs this run again</summary>"
        f'<pre tabindex="0">{escape(text)}</pre></details>'
    )


def _config_differences(flat: Mapping[str, Mapping[str, object]]) -> str:
    keys = dict.fromkeys(key for values in flat.values() for key in values)
    odd = [k for k in keys if k != "run_dir" and len({repr(v.get(k)) for v in flat.values()}) > 1]
    if not odd:
        return '<p class="note">The configurations are equal.</p>'
    head = "".join(f'<th scope="col">{escape(label)}</th>' for label in flat)
    body = "".join(
        f'<tr><th scope="row">{escape(key)}</th>'
        + "".join(f"<td>{escape(str(values.get(key, '–')))}</td>" for values in flat.values())
        + "</tr>"
        for key in odd
    )
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Differing settings"><table>'
        "<caption>Settings that are not the same in all runs.</caption>"
        f'<thead><tr><th scope="col">Setting</th>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )
