from arl_gym.core import PromptView
from arl_gym.envs.webshop.prompts import PROMPTS

TASK = "find me a red bag, and price lower than 30.00 dollars"
RESULTS = "Back to Search [SEP] Page 1 (Total results: 2) [SEP] Next > [SEP] 4821 [SEP] bag [SEP] $15.0"
PAGE = f"Instruction: [SEP] {TASK} [SEP] {RESULTS}"


def view(**changed: object) -> PromptView:
    fields: dict[str, object] = {
        "task": TASK,
        "observation": PAGE,
        "step": 1,
        "history": ((1, f"WebShop [SEP] Instruction: [SEP] {TASK} [SEP] Search", "search[red bag]"),),
        "admissible": ("click[back to search]", "click[next >]", "click[4821]"),
        "instructions": "Answer with an action.",
        "append": False,
    }
    return PromptView(**(fields | changed))  # type: ignore[arg-type]


def content(name: str, **changed: object) -> str:
    (message,) = PROMPTS[name](view(**changed))
    assert message["role"] == "user"
    assert isinstance(message["content"], str)
    return message["content"]


def test_the_default_prompt_says_the_task_once():
    shown = content("default")
    assert shown.count(TASK) == 1
    assert "Step 1, the page: WebShop [SEP] Search\nStep 1, you did: search[red bag]" in shown
    assert shown.endswith(
        f"This is step 2. The page now:\n{RESULTS}\n\n"
        "Possible actions:\n- search[words]\n- click[back to search]\n- click[next >]\n- click[4821]\n\n"
        "Answer with an action."
    )


def test_the_default_prompt_does_not_suggest_the_task_as_a_query():
    shown = content("default", step=0, history=(), admissible=(f"search[{TASK}]",))
    assert f"search[{TASK}]" not in shown
    assert "- search[words]" in shown


def test_the_compact_prompt_is_the_task_and_the_fields_that_matter():
    assert content("compact") == f"{TASK}\n > search[red bag]\n Page 1\n Next >\n 4821\n bag\n $15.0"


def test_a_dialogue_adds_only_the_page():
    assert content("compact", append=True).startswith("Page 1")
    assert content("default", append=True).startswith("The page now:\nBack to Search")


def test_other_observation_modes_are_shown_as_they_are():
    page = f"Instruction:\n{TASK}\n[button] Back to Search [button_]\n"
    assert page in content("default", observation=page)
