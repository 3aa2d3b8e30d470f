"""The cluster tool: its places, transitions and robots, and what a second is worth. Both nets are made from this.

Wafers go LP, s1, ..., s5, LP_done. A hop has a transition that takes the wafer out (`u`, needs the robot), a place on
the robot's arm (`d`) and a transition that puts it down (`t`, gives the robot back). Every action takes five seconds.
"""

from __future__ import annotations

from itertools import pairwise

WAFERS = 7
FIRING_SECONDS = 5

STATIONS = ("LP", "s1", "s2", "s3", "s4", "s5", "LP_done")
PROCESSING_SECONDS = (0, 70, 0, 300, 70, 70, 0)
CAPACITIES = (WAFERS, 2, 1, 2, 1, 2, WAFERS)
LIMITED = ("s1", "s3", "s5")
"""Places where a wafer becomes scrap if it stays too long."""
SCRAP_SECONDS = 15
"""Seconds after the processing time until a wafer is scrap."""

ROBOTS = {"TM2": ("LP", "s1", "s2", "s4", "s5", "LP_done"), "TM3": ("s2", "s3", "s4")}
HOPS = tuple(pairwise(STATIONS))
ARMS = tuple(f"d{number}" for number in range(1, len(HOPS) + 1))
PLACES = (*STATIONS, *ARMS, *ROBOTS)

TRANSITIONS = tuple(f"{kind}{number}" for kind in "ut" for number in range(1, len(HOPS) + 1))
WAIT = len(TRANSITIONS)
ACTIONS = len(TRANSITIONS) + 1

AT_A_PORT, ON_AN_ARM, FREE_TO_STAY, MUST_LEAVE = range(4)
FEATURES = 5
"""Figures per wafer in an observation: number, place, its type, seconds there, seconds to scrap (-1: never)."""
OBSERVATION = WAFERS * FEATURES

PROCESSING_REWARD = 2
TIME_REWARD = -1
OVERTIME_REWARD = -2
"""Penalty per second and wafer: ready in a limited place, or on an arm for longer than it takes to put it down."""
ARM_SECONDS = 10
WAFER_REWARD = 10
FINISH_REWARD = 800
SCRAP_REWARD = -100


def robot_of(hop: tuple[str, str]) -> str:
    """The robot that reaches both ends."""
    (robot,) = (name for name, reach in ROBOTS.items() if set(hop) <= set(reach))
    return robot


def type_of(place: str) -> int:
    """Type of a wafer's place."""
    if place in ARMS:
        return ON_AN_ARM
    if place in LIMITED:
        return MUST_LEAVE
    return AT_A_PORT if place.startswith("LP") else FREE_TO_STAY


def limit_of(station: str) -> int | None:
    """Seconds after which a wafer there is scrap."""
    return PROCESSING_SECONDS[STATIONS.index(station)] + SCRAP_SECONDS if station in LIMITED else None
