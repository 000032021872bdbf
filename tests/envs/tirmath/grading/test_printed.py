import pytest

from arl_gym.envs.tirmath.grading.printed import printed_to_latex


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("x**2 + 1", "x^{2}+1"),
        ("-x**2", "-x^{2}"),
        ("(-x)**2", "(-x)^{2}"),
        ("2**-1", "2^{-1}"),
        ("a - (b - c)*1", r"a-(b-c)\cdot 1"),
        ("[1, 2]", "[1, 2]"),
        ("{1, 2}", r"\{1, 2\}"),
        ("Fraction(3, 4)", r"\frac{3}{4}"),
        ("np.float64(8.000000000000002)", "8.000000000000002"),
        ("6.02e23", r"6.02\times 10^{23}"),
        ("1e-05", r"1\times 10^{-5}"),
        ("2*sqrt(3)", r"2\cdot \sqrt{3}"),
        ("oo", r"\infty "),
        ("{x: 1, y: 2}", "x=1, y=2"),
        ("'42'", "42"),
    ],
)
def test_what_python_prints_becomes_latex(text: str, latex: str):
    assert printed_to_latex(text) == latex


@pytest.mark.parametrize(
    "text",
    [
        "42",
        "x^2*y",
        r"\frac{1}{2}",
        "2x*3",
        "foo(3)",
        "[i for i in x]",
        "a if b else c*d",
        "x.y(1)",
        "(" * 300 + "*",
    ],
)
def test_the_rest_is_left_alone(text: str):
    assert printed_to_latex(text) is None
