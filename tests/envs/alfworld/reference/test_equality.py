"""The native engine against the real one, on the hand-written rooms."""

import pytest

from arl_gym.envs.alfworld.house import NOTHING_HAPPENS
from arl_gym.rng import Rng
from benchmarks.alfworld_equality import Match, Tally, random_commands
from tests.envs.alfworld.plays import PLAYS

OTHER = {"0.4": "0.3", "0.3": "0.4"}


def in_the_other_grammar(command, grammar):
    """Return a command as the other grammar has it."""
    if grammar == "0.4" and command.startswith("move "):
        return command.replace("move ", "put ").replace(" to ", " in/on ")
    return command.replace("put ", "move ").replace(" in/on ", " to ") if grammar == "0.3" else command


def play_both(name, play, commands, steps):
    """Play `commands` and then `steps` random ones in both engines; return the match."""
    tally = Tally()
    match = Match(name, play.file_text, tally)
    match.play(("script", command) for command in commands)
    match.play(random_commands(match.house, Rng("equality", name), steps))
    match.reference.close()
    assert not tally.differences, tally.differences[0]
    assert tally.commands.total() == len(commands) + steps
    return match


@pytest.mark.parametrize("name", PLAYS)
def test_the_real_engine_answers_the_transcript_as_written_down(name, new_game):
    game = new_game(PLAYS[name].file_text)
    for command, answer, won in PLAYS[name].answers():
        assert (command, game.act(command), game.won) == (command, answer, won)


@pytest.mark.parametrize("name", PLAYS)
def test_both_engines_play_random_commands_alike(name):
    play_both(name, PLAYS[name], [], 25)


@pytest.mark.parametrize("name", PLAYS)
def test_both_engines_play_the_transcript_in_the_other_grammar_alike(name):
    play = PLAYS[name]
    commands = [in_the_other_grammar(command, play.grammar) for command, _, _ in play.answers()]
    other = play._replace(grammar=OTHER[play.grammar])
    assert play_both(f"{name}, {other.grammar}", other, commands, 20).won


# Lines that add something odd to the bedroom, and commands that show it.
ODDITIES = {
    "a receptacle without a location, an object of no type": (
        [
            "(receptacleType Dresser_bar_1 DresserType)",
            "(openable Dresser_bar_1)",
            "(pickupable Blob_bar_1)",
            "(inReceptacle Blob_bar_1 Bed_bar_1)",
        ],
        ["look", "take blob 1 from bed 1", "examine blob 1", "move blob 1 to bed 1", "go to dresser 1"],
    ),
    "an object in the hand at the start": (
        [
            "(objectType Cup_bar_1 CupType)",
            "(isReceptacleObject Cup_bar_1)",
            "(holds agent1 Cup_bar_1)",
            "(holdsAny agent1)",
            "(inReceptacleObject Book_bar_1 Cup_bar_1)",
            "(inReceptacleObject Pencil_bar_10 Cup_bar_1)",
            "Bed hold Cup",
        ],
        ["inventory", "examine cup 1", "move cup 1 to bed 1", "look", "take cup 1 from bed 1"],
    ),
    "an object in three receptacles that lies at two locations": (
        [
            "Vase_bar_1 in Desk_bar_1 pickupable",
            "(inReceptacle Vase_bar_1 Bed_bar_1)",
            "(inReceptacle Vase_bar_1 Safe_bar_1)",
            "(objectAtLocation Vase_bar_1 loc_bar_1)",
            "Desk Bed Safe Shelf hold Vase",
        ],
        ["take vase 1 from bed 1", "look", "go to desk 1", "look", "move vase 1 to shelf 1", "look"],
    ),
    "hot and cool at once, open without a door, on without a switch": (
        [
            "Plum_bar_1 in Bed_bar_1 pickupable isHot isCool",
            "Cart_bar_1 at loc_bar_7 opened",
            "Fan_bar_1 in Cart_bar_1 pickupable isToggled",
            "Radio_bar_1 in Cart_bar_1 pickupable isToggled isOn toggleable",
            "Bed Cart hold Plum Fan Radio",
        ],
        [
            "take plum 1 from bed 1",
            "examine plum 1",
            "go to cart 1",
            "move plum 1 to cart 1",
            "take fan 1 from cart 1",
            "examine fan 1",
            "use fan 1",
            "move fan 1 to cart 1",
            "use radio 1",
            "take radio 1 from cart 1",
            "examine radio 1",
        ],
    ),
    "ids without a class, and classes that become basins": (
        [
            "Attic at loc_bar_8",
            "Hat in Attic pickupable",
            "SoapBasin_bar_1 in Bed_bar_1 pickupable cleanable",
            "Pool_bar_1 at loc_bar_9",
            "Wash_bar_1_bar_Basin at loc_bar_9",
            "Attic Bed Pool hold Hat SoapBasin",
        ],
        ["go to attic ", "go to attic", "go to pool 1", "go to washbasin 1", "look"],
    ),
    "a knife that can be sliced, and an object to slice at two locations": (
        [
            "Knife_bar_1 in Bed_bar_1 pickupable sliceable",
            "Cake_bar_1 on loc_bar_1 sliceable",
            "(objectAtLocation Cake_bar_1 loc_bar_2)",
            "Bed Desk hold Knife",
        ],
        [
            "slice cake 1 with knife 1",
            "take knife 1 from bed 1",
            "slice knife 1 with knife 1",
            "go to desk 1",
            "slice cake 1 with knife 1",
        ],
    ),
}


@pytest.mark.parametrize("oddity", ODDITIES)
def test_both_engines_take_odd_files_alike(oddity):
    lines, commands = ODDITIES[oddity]
    play = PLAYS["look"]
    play_both(oddity, play._replace(room=play.room + "\n".join(lines)), commands, 15)


def test_both_engines_know_a_goal_that_holds_at_the_start(new_game):
    play = PLAYS["place"]
    game = new_game(play._replace(goal=play.goal._replace(place_type="shelf")).file_text)
    assert game.won
    assert game.act("no command") == NOTHING_HAPPENS
    assert game.won
