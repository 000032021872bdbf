import pytest

from arl_gym.errors import UnknownNameError
from arl_gym.train.actions import Move, action_type, move_types, transitions

RESULTS = (
    "Instruction: [SEP] find me a mug [SEP] Back to Search [SEP] Page 1 (Total results: 50) [SEP] Next >"
)
ITEM = "Instruction: [SEP] find me a mug [SEP] Back to Search [SEP] < Prev [SEP] size [SEP] 3 [SEP] Buy Now"


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        ("up", "up"),
        (" Down ", "down"),
        ("left", "left"),
        ("right", "right"),
        ("push left", "invalid"),
        ("", "invalid"),
    ],
)
def test_sokobans_kinds_are_its_directions(action, kind):
    assert action_type("ARL/Sokoban-v0", action) == kind


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        ("go to fridge 1", "go to"),
        ("take mug 1 from shelf 3", "take"),
        ("move mug 1 to shelf 3", "put"),
        ("put mug 1 in/on shelf 3", "put"),
        ("open cabinet 2", "open"),
        ("close cabinet 2", "close"),
        ("clean mug 1 with sinkbasin 1", "clean"),
        ("heat mug 1 with microwave 1", "heat"),
        ("cool mug 1 with fridge 1", "cool"),
        ("use desklamp 1", "use"),
        ("slice apple 1 with knife 1", "slice"),
        ("examine mug 1", "examine"),
        ("look", "look"),
        ("inventory", "inventory"),
        ("useless", "invalid"),
        ("walk to fridge 1", "invalid"),
    ],
)
def test_alfworlds_kinds_are_its_verbs(action, kind):
    assert action_type("ARL/ALFWorld-v0", action) == kind


@pytest.mark.parametrize(
    ("action", "observation", "kind"),
    [
        ("search[red mug]", "", "search"),
        ("click[next >]", RESULTS, "page"),
        ("click[< prev]", RESULTS, "page"),
        ("click[< prev]", ITEM, "back"),
        ("click[back to search]", ITEM, "back"),
        ("click[b01lm6w7z6]", "", "product"),
        ("click[3]", RESULTS, "product"),
        ("click[3]", ITEM, "option"),
        ("click[3]", "0f1e2d3c4b5a6978", "option"),
        ("click[x-large]", "", "option"),
        ("click[size: x-large]", ITEM, "option"),
        ("click[description]", ITEM, "read"),
        ("click[features]", ITEM, "read"),
        ("click[reviews]", ITEM, "read"),
        ("click[Buy Now]", ITEM, "buy"),
        ("scroll[down]", "", "scroll"),
        ("buy the mug", ITEM, "invalid"),
    ],
)
def test_webshops_kinds_depend_on_the_page(action, observation, kind):
    assert action_type("ARL/WebShop-v0", action, observation) == kind


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        ("Compute.\n```python\nprint(2)\n```", "code"),
        ("```py\nprint('\\\\boxed{2}')\n```\nSo \\boxed{3}.", "code"),
        ("It is \\boxed{4}.", "answer"),
        ("\\boxed{4}\n```python\nprint(2)\n```", "answer"),
        ("```python\nprint(2)", "void"),
        ("I do not know.", "void"),
    ],
)
def test_tirmaths_kinds_are_what_the_environment_reads(action, kind):
    assert action_type("ARL/TIRMath-v0", action) == kind


def test_an_environment_without_kinds_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'Sokoban'"):
        action_type("Other/Sokobans-v3", "up")


def test_versions_and_namespaces_do_not_matter():
    assert action_type("Sokoban", "up") == action_type("arl_gym:ARL/Sokoban-v12", "up") == "up"


def test_what_the_environment_refused_is_invalid_but_a_void_turn_keeps_its_name():
    assert move_types("ARL/ALFWorld-v0", [Move(action="go to nowhere 1", valid=False)]) == ["invalid"]
    assert move_types("ARL/TIRMath-v0", [Move(action="hm", valid=False)]) == ["void"]


def test_transitions_are_counted_within_an_episode_only():
    assert transitions([["a", "a", "b"], ["b", "a"], ["a"], []]) == {
        ("a", "a"): 1,
        ("a", "b"): 1,
        ("b", "a"): 1,
    }
