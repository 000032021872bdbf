"""Hand-written rooms, as problem files, and what the game answers there.

A line of a room is `R at LOCATION words`, `O in R words`, `O on LOCATION words` (in no receptacle), a fact in
brackets, or `TYPES hold TYPES`. The words are predicates of R or O.
"""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from arl_gym.assets import asset
from arl_gym.envs.alfworld.pddl import write_goal
from arl_gym.envs.alfworld.scene import Goal

_ANSWERED = re.compile(r"^([>*]) (.*)\n((?:(?![>*] ).*\n)*)", re.MULTILINE)

KITCHEN = """
agent1 at loc_bar_00
Bathtub_bar_1_bar_BathtubBasin at loc_bar_24
Cabinet_bar_01 at loc_bar_01 openable
Cabinet_bar_02 at loc_bar_02 openable
Cabinet_bar_03 at loc_bar_03 openable
Cabinet_bar_04 at loc_bar_04 openable
Cabinet_bar_05 at loc_bar_05 openable
Cabinet_bar_06 at loc_bar_06 openable
Cabinet_bar_07 at loc_bar_07 openable
Cabinet_bar_08 at loc_bar_08 openable opened
Cabinet_bar_09 at loc_bar_09 openable
Cabinet_bar_10 at loc_bar_10 openable
CounterTop_bar_1 at loc_bar_20
Drawer_bar_1 at loc_bar_20 openable
Fridge_bar_1 at loc_bar_21 openable
Microwave_bar_1 at loc_bar_22 openable
Shelf_bar_1 at loc_bar_20
Sink_bar_1_bar_SinkBasin at loc_bar_23
Apple_bar_1 in CounterTop_bar_1 pickupable cleanable heatable coolable sliceable
Apple_bar_2 in Fridge_bar_1 pickupable cleanable heatable coolable sliceable
Bread_bar_1 on loc_bar_20 pickupable heatable coolable sliceable
ButterKnife_bar_1 in Drawer_bar_1 pickupable cleanable
HousePlant_bar_1 in Shelf_bar_1
Knife_bar_1 in CounterTop_bar_1 pickupable cleanable
Lettuce_bar_1 in Fridge_bar_1 pickupable cleanable coolable sliceable
Mug_bar_1 in CounterTop_bar_1 pickupable cleanable heatable coolable isReceptacleObject
Pan_bar_1 in Shelf_bar_1 pickupable cleanable coolable isReceptacleObject
Potato_bar_1 in CounterTop_bar_1 pickupable cleanable heatable coolable sliceable
SaltShaker_bar_1 in Cabinet_bar_10 pickupable
(inReceptacle Mug_bar_1 Shelf_bar_1)
(inReceptacleObject Potato_bar_1 Pan_bar_1)
Cabinet Shelf hold Mug Pan SaltShaker
CounterTop Fridge Microwave SinkBasin hold Apple Lettuce Mug Potato
CounterTop Drawer SinkBasin BathtubBasin hold ButterKnife Knife Pan
"""

BEDROOM = """
agent1 at loc_bar_1
Bed_bar_1 at loc_bar_1
Desk_bar_1 at loc_bar_2
Drawer_bar_1 at loc_bar_3 openable
Drawer_bar_2 at loc_bar_4 openable
Safe_bar_1 at loc_bar_5 openable opened
Shelf_bar_1 at loc_bar_2
Book_bar_1 in Bed_bar_1 pickupable
Book_bar_2 in Shelf_bar_1 pickupable
DeskLamp_bar_1 in Desk_bar_1 toggleable
DeskLamp_bar_2 in Drawer_bar_1 toggleable pickupable
Pencil_bar_00 in Desk_bar_1 pickupable
Pencil_bar_01 in Desk_bar_1 pickupable
Pencil_bar_02 in Desk_bar_1 pickupable
Pencil_bar_03 in Desk_bar_1 pickupable
Pencil_bar_04 in Desk_bar_1 pickupable
Pencil_bar_05 in Desk_bar_1 pickupable
Pencil_bar_06 in Desk_bar_1 pickupable
Pencil_bar_07 in Desk_bar_1 pickupable
Pencil_bar_08 in Desk_bar_1 pickupable
Pencil_bar_09 in Desk_bar_1 pickupable
Pencil_bar_10 in Desk_bar_1 pickupable
Tomato_bar_1 in Safe_bar_1 pickupable heatable coolable cleanable isHot isClean
Tomato_bar_2 in Safe_bar_1 pickupable heatable coolable cleanable isCool isSliced
Bed Desk Shelf Drawer Safe hold Book Pencil DeskLamp Tomato
"""

HELP = """
Available commands:
  look:                             look around your current location
  inventory:                        check your current inventory
  go to (receptacle):               move to a receptacle
  open (receptacle):                open a receptacle
  close (receptacle):               close a receptacle
  take (object) from (receptacle):  take an object from a receptacle
  move (object) to (receptacle):  place an object in or on a receptacle
  examine (something):              examine a receptacle or an object
  use (object):                     use an object
  heat (object) with (receptacle):  heat an object using a receptacle
  clean (object) with (receptacle): clean an object using a receptacle
  cool (object) with (receptacle):  cool an object using a receptacle
  slice (object) with (object):     slice an object using a sharp object
"""

_CABINETS = (
    "cabinet 10, a cabinet 9, a cabinet 8, a cabinet 7, a cabinet 6, a cabinet 5, a cabinet 4, a cabinet 3"
)
KITCHEN_INTRO = (
    "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you,"
    f" you see a bathtubbasin 1, a {_CABINETS}, a cabinet 2, a cabinet 1, a countertop 1, a drawer 1,"
    " a fridge 1, a microwave 1, a shelf 1, and a sinkbasin 1.\n\nYour task is to: put a hot apple in fridge."
)

HEAT = f"""
> look
You are in the middle of a room. Looking quickly around you, you see nothing.
> inventory
You are not carrying anything.
> help
{HELP[1:]}> examine fridge 1
Nothing happens.
> open fridge 1
Nothing happens.
> take apple 2 from countertop 1
Nothing happens.
> go to cabinet 10
You arrive at cabinet 10. The cabinet 10 is closed.
> go to cabinet 10
Nothing happens.
> close cabinet 10
Nothing happens.
> open cabinet 10
You open the cabinet 10. The cabinet 10 is open. In it, you see nothing.
> open cabinet 10
Nothing happens.
> close cabinet 10
You close the cabinet 10.
> examine cabinet 10
The cabinet 10 is closed.
> go to cabinet 1
You arrive at cabinet 1. The cabinet 1 is closed.
> take saltshaker 1 from cabinet 1
Nothing happens.
> open cabinet 1
You open the cabinet 1. The cabinet 1 is open. In it, you see a saltshaker 1.
> examine saltshaker 1
Nothing happens.
> take saltshaker 1 from cabinet 1
You pick up the saltshaker 1 from the cabinet 1.
> inventory
You are carrying: a saltshaker 1.
> examine saltshaker 1
There's nothing special about saltshaker 1.
> close cabinet 1
You close the cabinet 1.
> move saltshaker 1 to cabinet 1
Nothing happens.
> go to cabinet 3
You arrive at cabinet 3. The cabinet 3 is open. In it, you see nothing.
> move saltshaker 1 to cabinet 3
You move the saltshaker 1 to the cabinet 3.
> examine cabinet 3
The cabinet 3 is open. In it, you see a saltshaker 1.
> look
You are facing the cabinet 3. Next to it, you see nothing.
> go to countertop 1
You arrive at countertop 1. On the countertop 1, you see a apple 2, a knife 1, a mug 1, and a potato 1.
> look
You are facing the countertop 1, drawer 1, and shelf 1. Next to it, you see nothing.
> go to drawer 1
Nothing happens.
> go to shelf 1
Nothing happens.
> slice apple 2 with knife 1
Nothing happens.
> take houseplant 1 from shelf 1
Nothing happens.
> take bread 1 from countertop 1
Nothing happens.
> take knife 1 from countertop 1
You pick up the knife 1 from the countertop 1.
> slice apple 2 with knife 1
You sliced the apple 2 with the knife 1.
> slice bread 1 with knife 1
You sliced the bread 1 with the knife 1.
> slice mug 1 with knife 1
Nothing happens.
> slice apple 1 with knife 1
Nothing happens.
> move knife 1 to shelf 1
Nothing happens.
> move knife 1 to drawer 1
Nothing happens.
> open drawer 1
You open the drawer 1. The drawer 1 is open. In it, you see a butterknife 1.
> move knife 1 to drawer 1
You move the knife 1 to the drawer 1.
> look
You are facing the countertop 1, drawer 1, and shelf 1. Next to it, you see a knife 1.
> examine drawer 1
The drawer 1 is open. In it, you see a butterknife 1, and a knife 1.
> take knife 1 from drawer 1
You pick up the knife 1 from the drawer 1.
> look
You are facing the countertop 1, drawer 1, and shelf 1. Next to it, you see nothing.
> move knife 1 to countertop 1
You move the knife 1 to the countertop 1.
> look
You are facing the countertop 1, drawer 1, and shelf 1. Next to it, you see a knife 1.
> take butterknife 1 from drawer 1
You pick up the butterknife 1 from the drawer 1.
> slice apple 2 with butterknife 1
You sliced the apple 2 with the butterknife 1.
> slice apple 2 with knife 1
Nothing happens.
> move butterknife 1 to drawer 1
You move the butterknife 1 to the drawer 1.
> take apple 2 from countertop 1
You pick up the apple 2 from the countertop 1.
> take potato 1 from countertop 1
Nothing happens.
> examine apple 2
This is a sliced apple 2.
> heat apple 2 with microwave 1
Nothing happens.
> go to microwave 1
You arrive at microwave 1. The microwave 1 is closed.
> heat apple 2 with microwave 1
You heat the apple 2 using the microwave 1.
> cool apple 2 with microwave 1
Nothing happens.
> examine apple 2
This is a hot sliced apple 2.
> go to fridge 1
You arrive at fridge 1. The fridge 1 is closed.
> cool apple 2 with fridge 1
You cool the apple 2 using the fridge 1.
> examine apple 2
This is a cool sliced apple 2.
> go to bathtubbasin 1
You arrive at bathtubbasin 1. On the bathtubbasin 1, you see nothing.
> clean apple 2 with bathtubbasin 1
Nothing happens.
> go to sinkbasin 1
You arrive at sinkbasin 1. On the sinkbasin 1, you see nothing.
> clean apple 2 with sinkbasin 1
You clean the apple 2 using the sinkbasin 1.
> examine apple 2
This is a cool and clean sliced apple 2.
> go to fridge 1
You arrive at fridge 1. The fridge 1 is closed.
> open fridge 1
You open the fridge 1. The fridge 1 is open. In it, you see a apple 1, and a lettuce 1.
> move apple 2 to fridge 1
You move the apple 2 to the fridge 1.
> take apple 2 from fridge 1
You pick up the apple 2 from the fridge 1.
> go to microwave 1
You arrive at microwave 1. The microwave 1 is closed.
> heat apple 2 with microwave 1
You heat the apple 2 using the microwave 1.
> examine apple 2
This is a hot and clean sliced apple 2.
> go to fridge 1
You arrive at fridge 1. The fridge 1 is open. In it, you see a apple 1, and a lettuce 1.
* move apple 2 to fridge 1
You move the apple 2 to the fridge 1.
* close fridge 1
You close the fridge 1.
* open fridge 1
You open the fridge 1. The fridge 1 is open. In it, you see a apple 2, a apple 1, and a lettuce 1.
> take apple 2 from fridge 1
You pick up the apple 2 from the fridge 1.
"""

COOL = """
> go to fridge 1
You arrive at fridge 1. The fridge 1 is closed.
> open fridge 1
You open the fridge 1. The fridge 1 is open. In it, you see a apple 1, and a lettuce 1.
> take apple 1 from fridge 1
You pick up the apple 1 from the fridge 1.
> examine apple 1
There's nothing special about apple 1.
> cool apple 1 with fridge 1
You cool the apple 1 using the fridge 1.
> examine apple 1
This is a cold apple 1.
> go to microwave 1
You arrive at microwave 1. The microwave 1 is closed.
> heat apple 1 with microwave 1
You heat the apple 1 using the microwave 1.
> examine apple 1
This is a hot apple 1.
> go to sinkbasin 1
You arrive at sinkbasin 1. On the sinkbasin 1, you see nothing.
> clean apple 1 with sinkbasin 1
You clean the apple 1 using the sinkbasin 1.
> examine apple 1
This is a hot and clean apple 1.
> go to countertop 1
You arrive at countertop 1. On the countertop 1, you see a apple 2, a knife 1, a mug 1, and a potato 1.
> move apple 1 to countertop 1
You move the apple 1 to the countertop 1.
> take apple 1 from countertop 1
You pick up the apple 1 from the countertop 1.
> go to fridge 1
You arrive at fridge 1. The fridge 1 is open. In it, you see a lettuce 1.
> cool apple 1 with fridge 1
You cool the apple 1 using the fridge 1.
> examine apple 1
This is a cool and clean apple 1.
> go to countertop 1
You arrive at countertop 1. On the countertop 1, you see a apple 2, a knife 1, a mug 1, and a potato 1.
* move apple 1 to countertop 1
You move the apple 1 to the countertop 1.
* examine countertop 1
On the countertop 1, you see a apple 2, a apple 1, a knife 1, a mug 1, and a potato 1.
* go to fridge 1
You arrive at fridge 1. The fridge 1 is open. In it, you see a lettuce 1.
* take lettuce 1 from fridge 1
You pick up the lettuce 1 from the fridge 1.
* go to sinkbasin 1
You arrive at sinkbasin 1. On the sinkbasin 1, you see nothing.
* clean lettuce 1 with sinkbasin 1
You clean the lettuce 1 using the sinkbasin 1.
* examine lettuce 1
This is a clean lettuce 1.
"""

CLEAN = """
> go to countertop 1
You arrive at countertop 1. On the countertop 1, you see a apple 2, a knife 1, a mug 1, and a potato 1.
> examine shelf 1
On the shelf 1, you see a houseplant 1, a mug 1, and a pan 1.
> take mug 1 from shelf 1
You pick up the mug 1 from the shelf 1.
> examine shelf 1
On the shelf 1, you see a houseplant 1, and a pan 1.
> examine countertop 1
On the countertop 1, you see a apple 2, a knife 1, a mug 1, and a potato 1.
> look
You are facing the countertop 1, drawer 1, and shelf 1. Next to it, you see nothing.
> examine mug 1
This is a normal mug 1. In it, you see nothing.
> take mug 1 from countertop 1
Nothing happens.
> move mug 1 to countertop 1
You move the mug 1 to the countertop 1.
> look
You are facing the countertop 1, drawer 1, and shelf 1. Next to it, you see a mug 1.
> take mug 1 from countertop 1
You pick up the mug 1 from the countertop 1.
> examine countertop 1
On the countertop 1, you see a apple 2, a knife 1, and a potato 1.
> go to sinkbasin 1
You arrive at sinkbasin 1. On the sinkbasin 1, you see nothing.
> clean mug 1 with sinkbasin 1
You clean the mug 1 using the sinkbasin 1.
> examine mug 1
This is a normal mug 1. In it, you see nothing.
> move mug 1 to sinkbasin 1
You move the mug 1 to the sinkbasin 1.
> go to shelf 1
You arrive at shelf 1. On the shelf 1, you see a houseplant 1, and a pan 1.
> take pan 1 from shelf 1
You pick up the pan 1 from the shelf 1.
> examine pan 1
This is a normal pan 1. In it, you see a potato 1.
> move pan 1 to countertop 1
You move the pan 1 to the countertop 1.
> take knife 1 from countertop 1
You pick up the knife 1 from the countertop 1.
> slice potato 1 with knife 1
You sliced the potato 1 with the knife 1.
> move knife 1 to countertop 1
You move the knife 1 to the countertop 1.
> take potato 1 from countertop 1
You pick up the potato 1 from the countertop 1.
> go to sinkbasin 1
You arrive at sinkbasin 1. On the sinkbasin 1, you see a mug 1.
> move potato 1 to sinkbasin 1
You move the potato 1 to the sinkbasin 1.
> take potato 1 from sinkbasin 1
You pick up the potato 1 from the sinkbasin 1.
> clean potato 1 with sinkbasin 1
You clean the potato 1 using the sinkbasin 1.
> examine potato 1
This is a clean sliced potato 1.
* move potato 1 to sinkbasin 1
You move the potato 1 to the sinkbasin 1.
"""

_TO_3 = "a pencil 10, a pencil 9, a pencil 8, a pencil 7, a pencil 6, a pencil 5, a pencil 4, a pencil 3"

LOOK = f"""
> look
You are facing the bed 1. Next to it, you see nothing.
> go to bed 1
Nothing happens.
> examine bed 1
On the bed 1, you see a book 2.
> take book 2 from bed 1
You pick up the book 2 from the bed 1.
> move book 2 to bed 1
You move the book 2 to the bed 1.
> look
You are facing the bed 1. Next to it, you see nothing.
> go to shelf 1
You arrive at shelf 1. On the shelf 1, you see a book 1.
> look
You are facing the desk 1, and shelf 1. Next to it, you see nothing.
> examine desk 1
On the desk 1, you see a desklamp 2, a pencil 11, {_TO_3}, a pencil 2, and a pencil 1.
> take desklamp 2 from desk 1
Nothing happens.
> use pencil 11
Nothing happens.
> use desklamp 1
Nothing happens.
> use desklamp 2
You turn on the desklamp 2.
> use desklamp 2
You turn on the desklamp 2.
> examine desklamp 2
Nothing happens.
> take book 1 from shelf 1
You pick up the book 1 from the shelf 1.
> move book 1 to desk 1
You move the book 1 to the desk 1.
> look
You are facing the desk 1, and shelf 1. Next to it, you see a book 1.
* take pencil 11 from desk 1
You pick up the pencil 11 from the desk 1.
* look
You are facing the desk 1, and shelf 1. Next to it, you see a book 1.
> go to safe 1
You arrive at safe 1. The safe 1 is open. In it, you see a tomato 2, and a tomato 1.
> move pencil 11 to safe 1
You move the pencil 11 to the safe 1.
> take tomato 2 from safe 1
You pick up the tomato 2 from the safe 1.
> examine tomato 2
This is a hot and clean tomato 2.
> move tomato 2 to safe 1
You move the tomato 2 to the safe 1.
> take tomato 1 from safe 1
You pick up the tomato 1 from the safe 1.
> examine tomato 1
This is a cool sliced tomato 1.
> move tomato 1 to safe 1
You move the tomato 1 to the safe 1.
> take pencil 11 from safe 1
You pick up the pencil 11 from the safe 1.
* go to desk 1
You arrive at desk 1. On the desk 1, you see a book 1, a desklamp 2, {_TO_3}, a pencil 2, and a pencil 1.
> go to drawer 2
You arrive at drawer 2. The drawer 2 is closed.
* use desklamp 1
You turn on the desklamp 1.
* move pencil 11 to drawer 2
Nothing happens.
* open drawer 2
You open the drawer 2. The drawer 2 is open. In it, you see a desklamp 1.
> move pencil 11 to drawer 2
You move the pencil 11 to the drawer 2.
> take desklamp 1 from drawer 2
You pick up the desklamp 1 from the drawer 2.
> examine desklamp 1
This desklamp 1 is on.
> use desklamp 1
Nothing happens.
"""

TWO = f"""
> go to desk 1
You arrive at desk 1. On the desk 1, you see a desklamp 2, a pencil 11, {_TO_3}, a pencil 2, and a pencil 1.
> take pencil 1 from desk 1
You pick up the pencil 1 from the desk 1.
> go to drawer 1
You arrive at drawer 1. The drawer 1 is closed.
> open drawer 1
You open the drawer 1. The drawer 1 is open. In it, you see nothing.
> move pencil 1 to drawer 1
You move the pencil 1 to the drawer 1.
> go to desk 1
You arrive at desk 1. On the desk 1, you see a desklamp 2, a pencil 11, {_TO_3}, and a pencil 2.
> take pencil 2 from desk 1
You pick up the pencil 2 from the desk 1.
> go to drawer 2
You arrive at drawer 2. The drawer 2 is closed.
> open drawer 2
You open the drawer 2. The drawer 2 is open. In it, you see a desklamp 1.
> move pencil 2 to drawer 2
You move the pencil 2 to the drawer 2.
> take pencil 2 from drawer 2
You pick up the pencil 2 from the drawer 2.
> go to drawer 1
You arrive at drawer 1. The drawer 1 is open. In it, you see a pencil 1.
* move pencil 2 to drawer 1
You move the pencil 2 to the drawer 1.
* examine drawer 1
The drawer 1 is open. In it, you see a pencil 2, and a pencil 1.
"""

PLACE = """
> help
Nothing happens.
> take book 2 from bed 1
You pick up the book 2 from the bed 1.
> go to safe 1
You arrive at loc 1. The safe 1 is open. In it, you see a tomato 2, and a tomato 1.
> move book 2 to safe 1
Nothing happens.
> put book 2 in safe 1
Nothing happens.
> put book 2 on safe 1
Nothing happens.
* put book 2 in/on safe 1
You put the book 2 in/on the safe 1.
* examine safe 1
The safe 1 is open. In it, you see a book 2, a tomato 2, and a tomato 1.
> take book 2 from safe 1
You pick up the book 2 from the safe 1.
> go to shelf 1
You arrive at loc 4. On the shelf 1, you see a book 1.
"""


class Play(NamedTuple):
    """A game and a transcript of it; `*` instead of `>` marks commands after which the goal holds."""

    room: str
    goal: Goal
    task: str
    transcript: str
    grammar: str = "0.4"

    @property
    def file_text(self) -> str:
        """The `.tw-pddl` file."""
        return game_file(self.room, self.goal, self.task, self.grammar)

    def answers(self) -> Iterator[tuple[str, str, bool]]:
        """Yield every command, its answer, and whether the goal holds after it."""
        for mark, command, answer in _ANSWERED.findall(self.transcript):
            yield command, answer if answer == HELP[1:] else answer[:-1], mark == "*"


PLAYS = {
    "place": Play(
        BEDROOM, Goal("pick_and_place_simple", "book", "safe"), "put a book in safe.", PLACE, "0.3"
    ),
    "look": Play(
        BEDROOM,
        Goal("look_at_obj_in_light", "pencil", "desklamp"),
        "look at pencil under the desklamp.",
        LOOK,
    ),
    "clean": Play(
        KITCHEN,
        Goal("pick_clean_then_place_in_recep", "potato", "sinkbasin"),
        "put a clean potato in sinkbasin.",
        CLEAN,
    ),
    "heat": Play(
        KITCHEN, Goal("pick_heat_then_place_in_recep", "apple", "fridge"), "put a hot apple in fridge.", HEAT
    ),
    "cool": Play(
        KITCHEN,
        Goal("pick_cool_then_place_in_recep", "apple", "countertop"),
        "cool some apple and put it in countertop.",
        COOL,
    ),
    "two": Play(
        BEDROOM, Goal("pick_two_obj_and_place", "pencil", "drawer"), "put two pencil in drawer.", TWO
    ),
}


# ---- writing the files

_ARGUMENTS = {
    "atLocation": ("agent", "location"),
    "receptacleAtLocation": ("receptacle", "location"),
    "receptacleType": ("receptacle", "rtype"),
    "objectType": ("object", "otype"),
    "canContain": ("rtype", "otype"),
    "inReceptacle": ("object", "receptacle"),
    "inReceptacleObject": ("object", "object"),
    "objectAtLocation": ("object", "location"),
    "holds": ("agent", "object"),
    "holdsAny": ("agent",),
    "openable": ("receptacle",),
    "opened": ("receptacle",),
}
_NAMED_IN_THE_DOMAIN = {
    "SinkBasinType": "rtype",
    "MicrowaveType": "rtype",
    "FridgeType": "rtype",
    "KnifeType": "otype",
    "ButterKnifeType": "otype",
}


def _facts(room: str) -> Iterator[tuple[str, ...]]:
    location: dict[str, str] = {}
    for line in room.strip().splitlines():
        if line.startswith("("):
            yield tuple(line.strip("()").split())
        elif " hold " in line:
            receptacles, objects = (part.split() for part in line.split(" hold "))
            yield from (("canContain", f"{r}Type", f"{o}Type") for r in receptacles for o in objects)
        elif line.startswith("agent1 at "):
            yield "atLocation", "agent1", line.split()[2]
        else:
            thing, word, place, *words = line.split()
            yield from ((predicate, thing) for predicate in words)
            if word == "at":
                location[thing] = place
                yield "receptacleAtLocation", thing, place
                basin = thing.endswith("Basin")
                yield "receptacleType", thing, f"{thing.split('_bar_')[-1 if basin else 0]}Type"
                continue
            yield "objectType", thing, f"{thing.split('_bar_')[0]}Type"
            if word == "in":
                yield "inReceptacle", thing, place
            yield "objectAtLocation", thing, location.get(place, place)


def problem(room: str, goal: Goal) -> str:
    """Return a room and a goal as the text of a PDDL problem."""
    facts = list(_facts(room))
    kinds = dict(_NAMED_IN_THE_DOMAIN)
    for name, *args in facts:
        kinds |= zip(args, _ARGUMENTS.get(name, ("object",)), strict=True)
    # The goal names types, in lower case.
    known = {name.lower() for name in kinds}
    for name, kind in ((goal.object_type, "otype"), (goal.place_type, "rtype")):
        if f"{name}type" not in known:
            kinds[f"{name}type"] = kind
    objects = "\n".join(f"    {name} - {kind}" for name, kind in kinds.items())
    init = "\n".join(f"    ({' '.join(fact)})" for fact in facts)
    return (
        f"(define (problem plan)\n(:domain alfred)\n(:objects\n{objects}\n)\n"
        f"(:init\n    (= (total-cost) 0)\n{init}\n)\n(:goal {write_goal(goal)})\n"
        "(:metric minimize (total-cost))\n)\n"
    )


def game_file(room: str, goal: Goal, task: str, grammar: str = "0.4") -> str:
    """Return the `.tw-pddl` file of a room, a goal and its wording."""
    domain, words = asset("alfworld/alfred.pddl").read_text(), asset("alfworld/alfred.twl2").read_text()
    if grammar == "0.3":
        domain, words = _older(domain), _older(words)
    return json.dumps(
        {
            "pddl_domain": domain,
            "grammar": words.replace("UNKNOWN GOAL.", task),
            "pddl_problem": problem(room, goal),
            "solvable": True,
            "walkthrough": None,
        }
    )


def _older(text: str) -> str:
    """Undo what release 0.4 changed: the name in "You arrive", `put` for `move`, and no help."""
    for new, old in (
        ("You arrive at {r.name}.", "You arrive at {lend.name}."),
        ("You move the {o.name} to the {r.name}.", "You put the {o.name} in/on the {r.name}."),
        ('"move {o} to {r}"', '"put {o} in/on {r}"'),
    ):
        text = text.replace(new, old)
    text = re.sub(r"\naction help \{.*?\n\}\n", "", text, flags=re.DOTALL)
    return re.sub(r"\n\(:action help\n.*?\n\)\n", "\n", text, flags=re.DOTALL)
