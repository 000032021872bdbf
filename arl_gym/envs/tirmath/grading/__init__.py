r"""Grades answers of TIR-Math: does the content of the last box equal the gold answer?

A box is required and the last complete one counts. What Python prints is read as mathematics but never
evaluated; strings and fractions decide most pairs in this process, the rest goes to math-verify's parser and
sympy in a process of its own, under a deadline. When in doubt an answer is wrong: paying for a wrong answer
costs more than missing an odd spelling of a right one.

| Matter | Rule |
|---|---|
| Number asked for | it must be written out: integer, decimal, quotient, mixed number, a·10^n. `2+3`, `5!`, `2^{10}`, `\sqrt 4`, `\binom52` are left undone and not paid; for an integer, neither is a quotient (`84/7`). |
| Expression asked for | any expression of equal value (`\sqrt{125}` for `5\sqrt5`, a product for its expansion), but no `\int`, `\sum`, `\prod`, `\lim`, derivative unless gold has one. |
| Decimals | exact, or gold rounded to the digits shown if those are 6 or more (0.333333 is 1/3, 0.33 is not), or float noise below 1e-12 in 12 digits or more. An integer must be exact but for noise (8.000000000000002). |
| Percent | the sign is optional: 10% is 10 and 0.1; but 0.5% is not 0.5. |
| Units | optional; if both sides have one, they must be the same ($80 is not 80 cents, cm^2 not cm^3). Degree signs are dropped. Million and dozen are no units. |
| Thousands | `1,234`, `1{,}234`, `1\,234`, `1 234`; other numbers side by side are no answer. |
| Bare list, set | any order, every item once; a set may also be given bare or in `[]`, a bare list in any brackets. |
| Tuple | in order; parentheses may be dropped, `[]` may stand for them unless there are two items. |
| Interval, inequality | brackets count, infinity is always open; `x<3`, `x \in (…)` and `(-\infty,3)` are the same. Unions in any order. |
| Matrix | entry by entry; nested Python lists will do. A row is no column. |
| `a \pm b` | the list of both values. |
| `x = 5` | the same as 5 if the left side is a name (`x`, `f(2)`, `AB`, `x+y`); `x=5` is not `y=5`. `2+3=5`, `0=0` and `-x=5` are no values. |
| Equations, inequalities | equal if one is the other times a constant. |
| Words | letter by letter; case, full stops and `\text` do not matter. `(C)` is `C`. |
| Ratios, times of day | letter by letter. |
| Numeral with a base | digits and base must agree; `1010` and `10` are not `1010_2`. |
| Letters | `x` is not `X`; symbols are real, and where only positive values make sense, positive. |
| Two answers in one box | a list, and wrong unless gold is that list. |
| No answer | empty, malformed, longer than 500 characters, nested deeper than 30, power towers, exponents over 20,000, factorials over 5,000; equal strings are equal all the same, where they are not empty. |

>>> with Grader() as grader:
...     grader.check(r"\frac{1}{2}", "0.5")
Verdict(equal=True, how='number')
"""  # noqa: E501 - rows of the table

from arl_gym.envs.tirmath.grading.box import extract_boxed, has_box
from arl_gym.envs.tirmath.grading.grader import Grader, shared_grader
from arl_gym.envs.tirmath.grading.judge import Verdict

GRADER_VERSION = "1+math-verify-0.9.0"
"""Our rules and the release of math-verify they were checked with: stored beside every score."""

__all__ = ["GRADER_VERSION", "Grader", "Verdict", "extract_boxed", "has_box", "shared_grader"]
