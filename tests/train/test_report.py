import json
import re
import sys
from html.parser import HTMLParser

import pytest

from arl_gym.errors import ArlGymError, ConfigError, DataError, UnknownNameError
from arl_gym.train.report import compare_report, write_report
from arl_gym.train.result import read_result
from tests.train.fake_run import CONFIG, episode, make_run, result, scored, write_episodes, write_rows

VOID = {"meta", "br", "img", "link"}


class Page(HTMLParser):
    """Visible text, tags, and a check that every tag is closed in order."""

    def __init__(self, html):
        super().__init__()
        self.words, self.tags, self.attrs = [], [], []
        self.open: list[str] = []
        self.feed(html)
        assert self.open == [], f"left open: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attrs.append(dict(attrs))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attrs.append(dict(attrs))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "run")


def page(run_dir):
    return Page(write_report(run_dir).read_text(encoding="utf-8"))


def test_the_report_of_a_whole_run_leaves_nothing_out(tmp_path):
    run = make_run(tmp_path / "run", steps=20, whole=True)
    assert write_report(run) == run / "report.html"
    html = (run / "report.html").read_text()
    shown = Page(html)
    ids = [a["id"] for a in shown.attrs if "id" in a]
    assert len(ids) == len(set(ids))
    # 10 charts of training, 1 of cloning, 1 of the tokens outside the clip range, 3 of recorded steps.
    assert sum(a.get("role") == "img" for a in shown.attrs) == 15
    assert "SAMPO on ARL/Sokoban-v0" in shown.text
    assert "Left out" not in shown.text
    titles = (
        *("Success", "Curves", "Where the time went", "Sequences of one step", "Classes of turns"),
        *("Actions that follow one another", "Sample episodes", "Configuration"),
    )
    assert [t for t in titles if t not in shown.text] == []


def test_what_a_run_recorded_without_scores_lacks_is_a_sentence(run):
    text = page(run).text
    sentence = "Nothing to show: the trajectories of run were recorded without scores of their tokens."
    assert text.count(sentence) == text.count("Nothing to show") == 2
    assert "Left out" not in text


def test_the_report_says_how_steadily_the_run_learned(run):
    write_rows(run / "metrics.jsonl", [{"step": s, "rollout/played_success_rate": 0.5} for s in range(1, 11)])
    assert (
        "Success in training, mean of 5 steps: 0.50 at the end, 0.50 at best (step 5); its deepest fall from "
        "a peak was 0.00. Variance over the last fifth of the steps: 0.0000." in page(run).text
    )


def test_the_verdict_is_built_from_the_numbers(run):
    assert (
        "SAMPO raised greedy success from 0.37 (cloned) to 0.55 (+0.18 [+0.11, +0.25]) on 256 unseen tasks."
        in page(run).text
    )


@pytest.mark.parametrize(
    ("sampo", "difference", "sentence"),
    [
        (
            (0.40, 0.34, 0.46),
            (0.03, -0.04, 0.10),
            "SAMPO did not clearly change greedy success: 0.37 (cloned), then 0.40 (+0.03 [-0.04, +0.10])",
        ),
        (
            (0.20, 0.16, 0.25),
            (-0.17, -0.24, -0.10),
            "SAMPO lowered greedy success from 0.37 (cloned) to 0.20 (-0.17 [-0.24, -0.10])",
        ),
    ],
)
def test_the_verdict_claims_no_more_than_the_interval(run, sampo, difference, sentence):
    (run / "result.json").write_text(json.dumps(result(sampo=sampo, difference=difference)))
    assert sentence in page(run).text


def test_without_differences_the_verdict_is_the_agents_own_rate(run):
    raw = result() | {"differences": [], "split": "train"}
    (run / "result.json").write_text(json.dumps(raw))
    assert "SAMPO solves 0.55 [0.49, 0.61] of 256 training tasks greedily." in page(run).text


def test_without_a_result_the_verdict_says_what_training_shows(run):
    (run / "result.json").unlink()
    write_rows(
        run / "metrics.jsonl",
        [{"step": s, "rollout/played_success_rate": r} for s, r in ((1, 0.25), (2, 0.75))],
    )
    assert (
        "Success on the training tasks went from 0.50 to 0.50 in 2 steps (means of the first and last 2); "
        "nothing was evaluated." in page(run).text
    )


def test_generated_scores_cannot_pass_for_benchmark_scores(run):
    assert "dataset generated: no benchmark score" in page(run).text
    (run / "result.json").write_text(json.dumps(result() | {"dataset": "original"}))
    text = page(run).text
    assert "dataset original" in text
    assert "no benchmark score" not in text


def test_every_agent_has_a_row_with_interval(run):
    text = page(run).text
    for cells in (
        "random 0.02 [0.01, 0.05] – 256 -1.30 14.8 1.00 2.1",
        "cloned 0.37 [0.31, 0.43] 0.33 [0.28",
    ):
        assert cells in text


def test_the_time_shares_are_of_the_whole_step(run):
    write_rows(
        run / "metrics.jsonl",
        [{"step": 1, "time/rollout_s": 5, "time/score_s": 1, "time/update_s": 2, "time/step_s": 10}],
    )
    assert "Rollout 5.0 50 % Scoring 1.0 10 % Update 2.0 20 % Rest 2.0 20 %" in page(run).text


def test_the_page_reaches_for_nothing_outside(run):
    html = write_report(run).read_text()
    shown = Page(html)
    assert not {"script", "link", "img", "iframe", "object"} & set(shown.tags)
    links = [v for attrs in shown.attrs for k, v in attrs.items() if k in ("src", "href", "xlink:href")]
    assert all(link.startswith("#") for link in links)
    assert "@import" not in html
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", html))


def test_the_page_is_accessible(run):
    shown = Page(write_report(run).read_text())
    assert shown.tags.count("h1") == 1
    assert shown.tags.count("table") == shown.tags.count("caption") == 2
    charts = [a["aria-label"] for a in shown.attrs if a.get("role") == "img"]
    assert len(charts) == shown.tags.count("svg") - sum(a.get("class") == "whisker" for a in shown.attrs)
    assert any(
        re.search(r"Success in training.*SAMPO: .* at step 1, .* at step 12", label) for label in charts
    )


def test_everything_is_escaped(run):
    evil = "</pre><script>alert(1)</script>&amp;"
    raw = result()
    raw["method"] = raw["env_id"] = raw["rows"][0]["name"] = raw["differences"][0]["b"] = evil
    raw["rows"][3]["name"] = raw["differences"][1]["a"] = evil + "2"
    (run / "result.json").write_text(json.dumps(raw))
    (run / "config.toml").write_text(f"method = '{evil}'\n")
    record = episode(True, response=evil) | {"task_id": evil, "stop": evil}
    record["turns"][0]["action"] = evil
    record["turns"][0]["messages"][0] = {"role": evil, "content": [{"type": "text", "text": evil}]}
    write_episodes(run / "trajectories" / "step-000999.jsonl.gz", [record])
    shown = page(run)
    assert "script" not in shown.tags
    assert shown.text.count(evil) > 8


def test_sample_episodes_are_the_first_success_and_failure_of_the_last_file(run):
    write_episodes(run / "trajectories" / "step-000001.jsonl.gz", [episode(True) | {"task_id": "earlier"}])
    names = [(True, "won-1"), (True, "won-2"), (False, "lost-1"), (False, "lost-2")]
    records = [episode(success) | {"task_id": name} for success, name in names]
    write_episodes(run / "trajectories" / "step-000200.jsonl.gz", records)
    text = page(run).text
    assert "won-1: 2 turns, score 1.00, terminated" in text
    assert "lost-1: 2 turns, score 0.00, truncated" in text
    assert not re.search("earlier|won-2|lost-2", text)
    assert "action 'right', reward +10.90" in text
    assert "format broken" in text


def test_later_turns_show_only_the_last_message(run):
    write_episodes(run / "trajectories" / "step-000200.jsonl.gz", [episode(True)])
    text = page(run).text
    assert text.count("You play Sokoban.") == 1
    assert "Step 2. The board:" in text
    assert "No failure in step-000200.jsonl.gz." in text


def test_images_are_named_by_their_hash(run):
    record = episode(True)
    record["turns"][0]["messages"] = [{"role": "user", "content": [{"type": "image", "hash": "abc123"}]}]
    write_episodes(run / "trajectories" / "step-000200.jsonl.gz", [record])
    assert "[image abc123]" in page(run).text


def test_half_a_character_in_a_response_does_not_cost_the_report(run):
    write_episodes(run / "trajectories" / "step-000200.jsonl.gz", [episode(True, response="\ud83d!")])
    assert "?!" in page(run).text


@pytest.mark.parametrize(
    ("missing", "sentence", "sections"),
    [
        ("result.json", "Left out: run has no result.json and no evaluation (eval.every).", 1),
        ("config.toml", "Left out: run has no config.toml.", 2),
        (
            "trajectories/step-000120.jsonl.gz",
            "Left out: run has no recorded episodes",
            1,
        ),
        (
            "trajectories/step-000120.jsonl.gz",
            "Nothing to show: run has no recorded episodes",
            3,
        ),
    ],
)
def test_a_missing_part_is_a_sentence(run, missing, sentence, sections):
    (run / missing).unlink()
    text = page(run).text
    assert text.count(sentence) == sections


def test_an_empty_folder_gives_a_report_that_says_so(tmp_path):
    (tmp_path / "run").mkdir()
    text = page(tmp_path / "run").text
    assert "Nothing has been measured yet." in text
    assert text.count("Left out") == 6


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("metrics.jsonl", b"{broken}\n"),
        ("result.json", b"{"),
        ("config.toml", b"= ="),
        ("trajectories/step-000120.jsonl.gz", b"\x1f\x8b\x08\x00half"),
        ("trajectories/step-000120.jsonl.gz", b"plain text"),
    ],
)
def test_an_unreadable_part_is_a_sentence_that_names_the_file(run, name, content):
    (run / name).write_bytes(content)
    assert re.search(f"Left out: [^.]*{re.escape(name.split('/')[-1])}", page(run).text)


def test_without_matplotlib_only_the_figures_are_missing(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    text = page(run).text
    assert text.count("Left out: plots needs: pip install 'arl-gym[train]'.") == 2  # curves and actions
    assert "Where the time went" in text


def test_long_runs_are_smoothed_and_the_page_says_so(run):
    assert "mean of the last" not in page(run).text
    write_rows(
        run / "metrics.jsonl", [{"step": s, "rollout/played_success_rate": s / 60} for s in range(1, 61)]
    )
    assert "Bold: mean of the last 3 steps." in page(run).text


def test_the_same_run_gives_the_same_bytes(run):
    first = write_report(run).read_bytes()
    assert write_report(run).read_bytes() == first


def test_writing_replaces_the_old_report_and_leaves_no_draft(run, tmp_path):
    out = tmp_path / "pages" / "a.html"
    out.parent.mkdir()
    out.write_text("old")
    assert write_report(run, out) == out
    assert "<h1>" in out.read_text()
    assert [p.name for p in out.parent.iterdir()] == ["a.html"]


def test_a_report_that_cannot_be_written_is_one_clear_error(run, tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(ArlGymError, match=r"cannot write .*taken"):
        write_report(run, tmp_path / "taken")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run", "taken"]


def test_a_run_folder_that_is_none_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"expected a run folder, got .*nothing"):
        write_report(tmp_path / "nothing")


def test_a_difference_of_the_wrong_sign_is_refused(run):
    (run / "result.json").write_text(json.dumps(result(difference=(-0.18, -0.25, -0.11))))
    with pytest.raises(DataError, match=r"SAMPO minus cloned to be \+0.180, got -0.180"):
        read_result(run / "result.json")


def test_a_difference_of_an_unknown_agent_is_refused(run):
    raw = result()
    raw["differences"][1]["a"] = "SAMP"
    (run / "result.json").write_text(json.dumps(raw))
    with pytest.raises(UnknownNameError, match="did you mean 'SAMPO'"):
        read_result(run / "result.json")


@pytest.mark.parametrize("key", ["env_id", "dataset", "rows", "seed"])
def test_a_result_without_a_key_is_refused(run, key):
    raw = result()
    del raw[key]
    (run / "result.json").write_text(json.dumps(raw))
    with pytest.raises(DataError, match=key):
        read_result(run / "result.json")


def test_comparing_overlays_runs_and_shows_what_differs(tmp_path):
    runs = [make_run(tmp_path / name) for name in ("sampo", "grpo")]
    (runs[1] / "config.toml").write_text(CONFIG.replace("0.003", "0.2").replace("runs/fake", "runs/other"))
    html = compare_report(runs, tmp_path / "compare.html").read_text()
    shown = Page(html)
    ids = [a["id"] for a in shown.attrs if "id" in a]
    assert len(ids) == len(set(ids))
    assert "dataset generated: no benchmark score" in shown.text
    assert "grpo: SAMPO 0.55 [0.49, 0.61]" in shown.text
    assert "loss.clip_low 0.003 0.2" in shown.text
    assert "run_dir" not in shown.text
    assert "#0072b2" in html
    assert "#d55e00" in html


def test_comparing_runs_on_different_tasks_warns(tmp_path):
    runs = [make_run(tmp_path / name) for name in ("a", "b")]
    assert "do not compare" not in Page(compare_report(runs, tmp_path / "c.html").read_text()).text
    (runs[1] / "result.json").write_text(json.dumps(result() | {"content_hash": "other"}))
    assert "do not compare" in Page(compare_report(runs, tmp_path / "c.html").read_text()).text


def test_runs_of_one_name_are_told_apart_by_their_folders(tmp_path):
    runs = [make_run(tmp_path / name / "run") for name in ("a", "b")]
    (runs[1] / "result.json").unlink()
    text = Page(compare_report(runs, tmp_path / "c.html").read_text()).text
    assert "a/run, b/run" in text
    assert "Without result.json: b/run." in text


def test_comparing_nothing_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="at least one run"):
        compare_report([], tmp_path / "c.html")


def test_comparing_groups_draws_their_means_and_says_what_they_differ_in(tmp_path):
    runs = [make_run(tmp_path / name, steps=5) for name in ("a", "b")]
    (runs[1] / "config.toml").write_text(CONFIG.replace("seed = 3", "seed = 4").replace("0.003", "0.2"))
    shown = Page(compare_report(runs, tmp_path / "c.html", group_by="method").read_text())
    text = shown.text
    assert any("SAMPO (2 runs): 0." in a.get("aria-label", "") for a in shown.attrs)
    assert "The runs of SAMPO differ in more than their seed: loss.clip_low." in text
    assert "95% bootstrap band" in text


def test_comparing_says_of_every_run_which_figures_it_lacks(tmp_path):
    runs = [make_run(tmp_path / name) for name in ("a", "b")]
    write_episodes(runs[0] / "trajectories" / "step-000120.jsonl.gz", [scored(episode(True))])
    text = Page(compare_report(runs, tmp_path / "c.html").read_text()).text
    assert "Step 120: a mask would drop 0 of 2 turns" in text
    assert "the trajectories of b were recorded without scores of their tokens." in text
    assert "a stream needs at least two steps recorded with scores of their tokens, got 1; the" in text


def test_without_a_result_the_evaluations_during_training_are_shown(run):
    (run / "result.json").unlink()
    rows = [
        {"step": 1, "rollout/played_success_rate": 0.5},
        {"step": 4, "eval/success_rate": 0.25, "eval/success_rate_heat": 0.5},
        {"step": 8, "eval/success_rate": 0.75, "eval/success_rate_heat": 0.125},
    ]
    write_rows(run / "metrics.jsonl", rows)
    text = page(run).text
    assert "on the validation tasks it was 0.75 at step 8." in text
    assert "Share of validation tasks solved, step 4 to step 8." in text
    assert "all tasks 0.25 0.75 0.75 heat 0.5 0.5 0.125" in text


def test_a_run_over_several_environments_names_them_and_shows_each(run):
    (run / "result.json").unlink()
    (run / "config.toml").write_text(
        '[env]\nid = "ARL/Sokoban-v0"\n[[envs]]\nid = "A-v0"\n[[envs]]\nid = "B-v0"\n'
    )
    row = {"step": 1, "rollout/success_rate_A-v0": 0.5, "rollout/success_rate_B-v0": 0.25}
    evaluated = {"eval/success_rate": 0.5, "eval/success_rate_A-v0": 1.0, "eval/success_rate_B-v0": 0.0}
    write_rows(run / "metrics.jsonl", [row | evaluated])
    shown = page(run)
    assert "A run on A-v0, B-v0" in shown.text
    assert "step 1 to step 1; 2 environments count alike." in shown.text
    charts = [a["aria-label"] for a in shown.attrs if a.get("role") == "img"]
    assert [c.split(",")[0] for c in charts[:3]] == [
        *("Success in evaluation", "Success in training", "Success in evaluation")
    ]
    assert "by part, share of episodes. A-v0: 0.5 at step 1" in charts[1]


def test_one_generated_environment_makes_a_score_no_benchmarks(run):
    (run / "result.json").unlink()
    original = '[[envs]]\nid = "A-v0"\n[envs.kwargs]\ndataset = "original"\n'
    (run / "config.toml").write_text(original)
    assert "no benchmark score" not in page(run).text
    (run / "config.toml").write_text(original + '[[envs]]\nid = "B-v0"\n')
    assert "no benchmark score" in page(run).text


def test_the_alarms_of_a_run_are_listed_with_their_steps(run):
    write_rows(run / "metrics.jsonl", [{"step": s, "rollout/format_valid_frac": 0.9} for s in (1, 2)])
    assert "None: every metric stayed within the limits" in page(run).text
    write_rows(run / "metrics.jsonl", [{"step": 7, "rollout/format_valid_frac": 0.25}])
    assert (
        "Step 7: rollout/format_valid_frac: the share of turns with a valid format is 0.25" in page(run).text
    )


def test_the_time_is_that_of_model_environments_and_the_rest(run):
    seconds = {"step": 10.0, "generate": 4.0, "envs": 1.0, "score": 2.0, "update": 2.5, "overhead": 0.4}
    write_rows(run / "metrics.jsonl", [{"step": 1, **{f"time/{k}_s": v for k, v in seconds.items()}}])
    text = page(run).text
    assert "Generation 4.0 40 % Environments 1.0 10 % Scoring 2.0 20 % Update 2.5 25 % Rest 0.5 5 %" in text
    assert "Outside the model and the environments: 4.0 % of the time." in text
