import json
import math
import sys
import warnings

import pytest

from arl_gym.envs.tirmath.problems.original import OriginalProblems
from arl_gym.errors import DataError, DependencyMissing

SUM = {"problem": "What is $1 + 1$?", "answer": "2"}


def written(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def only(tmp_path, row):
    problems = OriginalProblems(written(tmp_path / "rows.jsonl", row))
    assert len(problems) == 1
    return problems.problem(0)


def answer(tmp_path, value, question="How many?"):
    return only(tmp_path, {"question": question, "answer": value}).answer


# ---- the benchmarks' own files


def test_math500(shared_data):
    problems = OriginalProblems(shared_data / "math" / "math500.simplerl.jsonl")
    assert (len(problems), problems.n_duplicates, problems.n_unanswered) == (500, 0, 0)
    first = problems.problem(0)
    assert first.answer == r"\left( 3, \frac{\pi}{2} \right)"
    assert (first.family, first.level, first.program) == ("Precalculus", 2, "")
    levels = [problems.problem(i).level for i in range(500)]
    assert [levels.count(level) for level in (1, 2, 3, 4, 5)] == [43, 90, 105, 128, 134]


def test_gsm8k(shared_data):
    problems = OriginalProblems(shared_data / "math" / "gsm8k_test.openai.jsonl")
    answers = [problems.problem(i).answer for i in range(len(problems))]
    assert len(answers) == 1319
    assert all(text.lstrip("-").isdigit() for text in answers)
    assert sorted(text for text in answers if text.startswith("-")) == ["-10", "-3"]
    assert "2125" in answers
    assert answers[0] == "18"


def test_simplerl_s_training_set(shared_data):
    with pytest.warns(UserWarning, match="of 8523 rows") as caught:
        problems = OriginalProblems(shared_data / "math" / "simplelr_math_35_train_new.arlarena.parquet")
    # One question comes twice letter by letter, one with other spaces; two rows have no answer at all.
    assert (len(problems), problems.n_duplicates, problems.n_unanswered) == (8519, 2, 2)
    assert len(caught) == 2
    found = [problems.problem(i) for i in range(len(problems))]
    levels = [problem.level for problem in found]
    assert [levels.count(level) for level in (3, 4, 5)] == [2514, 2648, 3357]
    answers = [problem.answer for problem in found]
    assert {"31250", "48", "70,110"} <= set(answers)  # the last are two solutions, 70 and 110
    assert not {"31,250", "48.0", "70110"} & set(answers)


@pytest.mark.parametrize("name", ["aime24.qwen25math.jsonl", "aime24.arlarena.parquet"])
def test_aime_answers_keep_their_leading_zeros(shared_data, name):
    problems = OriginalProblems(shared_data / "math" / name)
    answers = [problems.problem(i).answer for i in range(len(problems))]
    assert len(answers) == 30
    assert {"025", "073", "204"} <= set(answers)


def test_both_forms_of_aime_have_the_same_answers(shared_data):
    forms = [
        OriginalProblems(shared_data / "math" / name)
        for name in ("aime24.qwen25math.jsonl", "aime24.arlarena.parquet")
    ]
    answers = [sorted(form.problem(i).answer for i in range(30)) for form in forms]
    assert answers[0] == answers[1]


# ---- fields


def test_original_math_rows_have_their_answer_in_the_last_box_of_the_solution(tmp_path):
    row = {
        "problem": "Halve $x$ and add $3$.",
        "level": "Level 4",
        "type": "Algebra",
        "solution": r"First \boxed{x}, then $\boxed{\frac{x}{2} + 3}$.",
    }
    problem = only(tmp_path, row)
    assert (problem.answer, problem.family, problem.level) == (r"\frac{x}{2} + 3", "Algebra", 4)


@pytest.mark.parametrize("level", ["Level ?", None])
def test_an_unknown_level_is_0(tmp_path, level):
    assert only(tmp_path, SUM | {"level": level}).level == 0


def test_verl_rows_without_other_fields(tmp_path):
    row = {
        "data_source": "deepscaler",
        "prompt": [{"role": "system", "content": "You solve."}, {"role": "user", "content": "How far?"}],
        "reward_model": {"ground_truth": "007", "style": "rule"},
        "extra_info": {"index": 3, "split": "test", "level": 1},
    }
    problem = only(tmp_path, row)
    assert (problem.question, problem.answer, problem.level) == ("How far?", "007", 0)


def test_the_question_itself_is_preferred_to_the_prompt_around_it(tmp_path):
    row = {
        "prompt": [{"role": "user", "content": "Be short. How far?"}],
        "extra_info": {"question": "How far?", "answer": "3"},
    }
    problem = only(tmp_path, row)
    assert (problem.question, problem.answer) == ("How far?", "3")


@pytest.mark.parametrize(
    "prompt",
    [
        "<|im_start|>system\nHelp.<|im_end|>\n<|im_start|>user\nHow\nfar?\nPlease reason step by step, and …"
        "<|im_end|>\n<|im_start|>assistant\n",
        "Question:\nHow\nfar?\nAnswer:\nLet us see.",
        'Solve the following math problem with care.\n\nHow\nfar?\n\nRemember to put your answer after "A".',
        "How\nfar?",
    ],
)
def test_templates_around_a_question_are_taken_off(tmp_path, prompt):
    assert only(tmp_path, {"input": prompt, "gt_answer": "3"}).question == "How\nfar?"
    row = {"prompt": [{"role": "user", "content": prompt}], "target": "3"}
    assert only(tmp_path, row).question == "How\nfar?"


def test_empty_fields_give_way_to_the_next(tmp_path):
    row = {"problem": None, "question": "How?", "answer": " ", "gt_answer": None, "target": "3"}
    problem = only(tmp_path, row)
    assert (problem.question, problem.answer) == ("How?", "3")


# ---- answers


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (27, "27"),
        (27.0, "27"),
        (-0.5, "-0.5"),
        (0, "0"),
        ("27.0", "27"),
        ("2,125", "2125"),
        ("1,234,567", "1234567"),
        ("2,125.50", "2125.50"),
        ("1,2", "1,2"),
        ("(1,200)", "(1,200)"),
        ("12,3456", "12,3456"),
        (["34"], "34"),
        ("two steps <<1+1=2>>\n#### 1,002", "1002"),
        ("so $\\boxed{ 3 }$", "3"),
        (r"\fbox{7}", "7"),
        (r"$\frac{1}{2}$", r"\frac{1}{2}"),
        (r"$x$ or $y$", r"$x$ or $y$"),
        (r"\{1, 2\}", r"\{1, 2\}"),
        (r"\left[0, 1\right)", r"\left[0, 1\right)"),
        (r"\boxed{\{1, \frac{1}{2}\}}", r"\{1, \frac{1}{2}\}"),
        ("007", "007"),
    ],
)
def test_answers_are_bare_latex(tmp_path, value, text):
    assert answer(tmp_path, value) == text


def test_a_comma_between_several_answers_is_no_thousands_comma(tmp_path):
    assert answer(tmp_path, "70,110", "Enter all solutions, separated by commas.") == "70,110"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (r"\frac{1}{2", r"as many closing as opening braces, got '\\\\frac\{1\}\{2'"),
        ("1}{", "as many closing as opening braces"),
        (["1", "2"], r"one answer, got \['1', '2'\]"),
        ({"a": 1}, "one answer"),
        (True, "one answer, got True"),
        (math.nan, "an answer, got nan"),
        (r"\boxed{3", r"a closed \\boxed\{\}"),
        (r"\boxed{}", "an answer, got"),
        ("####", "an answer, got '####'"),
    ],
)
def test_an_unusable_answer_is_an_error_that_names_file_row_and_field(tmp_path, value, reason):
    path = written(tmp_path / "rows.jsonl", SUM, {"problem": "How?", "answer": value})
    with pytest.raises(DataError, match=rf"rows\.jsonl, line 2, field answer: expected {reason}"):
        OriginalProblems(path)


def test_a_solution_without_box_is_an_error(tmp_path):
    path = written(tmp_path / "rows.jsonl", {"problem": "How?", "solution": "It is 3."})
    with pytest.raises(DataError, match=r"field solution: expected a \\boxed\{\} in the solution, got none"):
        OriginalProblems(path)


def test_missing_fields_are_errors_that_name_what_is_there(tmp_path):
    path = written(tmp_path / "rows.jsonl", {"text": "How?", "answer": "3"})
    with pytest.raises(DataError, match=r"line 1: expected a question .*problem.*, got text, answer"):
        OriginalProblems(path)
    path = written(tmp_path / "rows.jsonl", {"problem": "How?", "result": "3"})
    with pytest.raises(DataError, match=r"line 1: expected an answer .*target.*, got problem, result"):
        OriginalProblems(path)


@pytest.mark.parametrize("question", ["", "  ", None, 3, [], [1], [{"role": "user"}]])
def test_a_row_without_question_is_an_error(tmp_path, question):
    path = written(tmp_path / "rows.jsonl", {"problem": question, "answer": "3"})
    with pytest.raises(DataError, match="line 1: expected a question"):
        OriginalProblems(path)


# ---- duplicates


def test_rows_that_ask_the_same_are_one_problem_and_counted(tmp_path):
    rows = [
        SUM,
        SUM | {"problem": "What  is\n$1 + 1$?"},
        SUM | {"answer": "3"},
        {"problem": "B", "answer": 1},
    ]
    with pytest.warns(UserWarning, match=r"left out 2 of 4 rows, which repeat a question.*'What  is"):
        problems = OriginalProblems(written(tmp_path / "rows.jsonl", *rows))
    assert problems.n_duplicates == 2
    assert [problems.problem(i).answer for i in (0, 1)] == ["2", "1"]


def test_rows_with_an_empty_answer_are_left_out_and_counted(tmp_path):
    rows = [SUM, {"problem": "B", "answer": "", "target": None}]
    with pytest.warns(UserWarning, match="left out 1 of 2 rows, which have an empty answer.*'B'"):
        problems = OriginalProblems(written(tmp_path / "rows.jsonl", *rows))
    assert (len(problems), problems.n_unanswered) == (1, 1)


def test_a_clean_file_gives_no_warning(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OriginalProblems(written(tmp_path / "rows.jsonl", SUM))


def test_the_content_hash_is_of_questions_and_answers(tmp_path):
    one = OriginalProblems(written(tmp_path / "one.jsonl", SUM)).content_hash
    same = OriginalProblems(
        written(tmp_path / "two.jsonl", {"question": SUM["problem"], "target": 2})
    ).content_hash
    other = OriginalProblems(written(tmp_path / "three.jsonl", SUM | {"answer": "3"})).content_hash
    assert one == same != other


def test_an_index_beyond_the_file_is_an_error(tmp_path):
    problems = OriginalProblems(written(tmp_path / "rows.jsonl", SUM))
    for index in (-1, 1):
        with pytest.raises(IndexError, match=f"problem {index} of .*rows.jsonl, which has 1"):
            problems.problem(index)


# ---- files


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_unicode_in_any_encoding(tmp_path, encoding):
    path = tmp_path / "rows.jsonl"
    text = json.dumps({"problem": "√2 · 東京\u2028?", "answer": "π"}, ensure_ascii=False)
    path.write_bytes(f"{text}\r\n\r\n".encode(encoding))
    problem = OriginalProblems(path).problem(0)
    assert (problem.question, problem.answer) == ("√2 · 東京\u2028?", "π")


def test_other_bytes_are_an_error(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes('{"problem": "é"}'.encode("latin-1"))
    with pytest.raises(DataError, match=r"rows\.jsonl: expected utf-8 text, got other bytes at byte 13"):
        OriginalProblems(path)


@pytest.mark.parametrize(
    "text",
    [json.dumps([SUM], indent=1), json.dumps(SUM), json.dumps(SUM, indent=1), f"\n{json.dumps(SUM)}\n"],
)
def test_json_may_be_a_list_or_an_object(tmp_path, text):
    path = tmp_path / "rows.JSON"
    path.write_text(text)
    assert OriginalProblems(path).problem(0).answer == "2"


def test_json_may_be_lines(tmp_path):
    assert len(OriginalProblems(written(tmp_path / "rows.json", SUM, {"problem": "B", "answer": 1}))) == 2


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        (
            "rows.jsonl",
            '{"problem": "a", "answer": "1"}\n{"problem": ',
            "rows.jsonl, line 2: expected a JSON",
        ),
        ("rows.jsonl", '{"a": ' + "9" * 5000 + "}", r"line 1: expected a JSON object, got .*digits"),
        ("rows.jsonl", "[1]", r"line 1: expected an object with fields, got \[1\]"),
        ("rows.json", '["a"]', "row 1: expected an object with fields, got 'a'"),
        ("rows.json", '[{"problem": "a"', "rows.json: expected JSON, got"),
        ("rows.jsonl", "", "expected problems with answers in .*rows.jsonl, got none"),
        ("rows.json", "[]", "expected problems with answers in .*rows.json, got none"),
        ("rows.csv", "problem,answer", r"expected a file that ends with one of \.jsonl, \.json, \.parquet"),
        ("rows.parquet", "no Parquet", "rows.parquet: expected a Parquet file, got"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_an_error(tmp_path, name, text, reason):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=reason):
        OriginalProblems(tmp_path / name)


def test_an_empty_json_file_is_an_error(tmp_path):
    (tmp_path / "rows.json").touch()
    with pytest.raises(DataError, match=r"rows\.json: expected JSON"):
        OriginalProblems(tmp_path / "rows.json")


def test_missing_files_and_folders_are_errors(tmp_path):
    with pytest.raises(DataError, match=r"rows\.jsonl, which is not there"):
        OriginalProblems(tmp_path / "rows.jsonl")
    with pytest.raises(DataError, match="which is a folder: name one of its files"):
        OriginalProblems(tmp_path)


def test_parquet_with_nested_columns(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [
        {"prompt": [{"role": "user", "content": f"Q{i}"}], "reward_model": {"ground_truth": i}, "junk": "x"}
        for i in range(3)
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "rows.parquet")
    problems = OriginalProblems(str(tmp_path / "rows.parquet"))
    assert [(p.question, p.answer) for p in problems._problems] == [("Q0", "0"), ("Q1", "1"), ("Q2", "2")]


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "rows.parquet").touch()
    with pytest.raises(DependencyMissing, match=r"reading rows.parquet needs: pip install 'arl-gym\[math\]'"):
        OriginalProblems(tmp_path / "rows.parquet")
