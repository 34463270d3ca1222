"""Search for settings whose plans have a given number of transitions, for fair comparisons."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

from crais.native import extension


def is_fair(transitions: float, steps: float) -> bool:
    """True if the two are comparable: within 3%."""
    return abs(transitions - steps) <= 0.03 * steps


def match_transitions(
    flags: str, steps: int, count: Callable[[list[str]], list[float]]
) -> tuple[str, float, int]:
    """The setting "@" in `flags` that leads to `steps` transitions, how many it leads to (0: there is
    no plan), and how many settings were tried (at most 24).

    A ratio stands after "cess:" or "ess:"; a larger value of any other number makes plans shorter.
    `count` returns the mean number of transitions of the plans of each setting: inf where there are
    too many to count, NaN where no plan can be made. The search tries a few settings, then two
    between the nearest on both sides, until one is fair. If none is, it takes the nearest; if all
    plans are too long or none can be made, the first, whose plans are the shortest.
    """
    # On the scale of places any real number is a setting, and the length of plans grows about
    # exponentially: a place is -log of a step, or -log(1 - ratio).
    is_ratio, is_step = "ess:@" in flags, "--max-step @" in flags
    places = [0.002, 0.05, 0.7, 2, 4, 9] if is_ratio else [0, 2, 4, 6] if is_step else [-10.0, -6, -2, 2, 6, 10]

    def setting(place: float) -> str:
        step = min(math.exp(-place), 1.0 if is_step else math.inf)
        return str(extension().significant(-math.expm1(-place), 6) if is_ratio else extension().significant(step, 4))

    best, tried, trials = places[0], 0, dict[float, float]()
    for _ in range(10):
        tried += len(places)
        found = zip(places, count([setting(place) for place in places]), strict=True)
        trials |= {place: transitions for place, transitions in found if transitions > 0}
        best = min(trials, key=lambda place: abs(trials[place] - steps), default=best)
        around = [(a, b) for a, b in pairwise(sorted(trials)) if trials[a] < steps <= trials[b]]
        if is_fair(trials.get(best, 0), steps) or not around:
            break
        low, high = around[0]
        # Where a line through log M meets log steps, and a place beyond that.
        most = 2 * steps if math.isinf(trials[high]) else trials[high]
        near = min(max(math.log(steps / trials[low]) / math.log(most / trials[low]), 0.1), 0.9)
        beyond = near + (1 if near < 0.5 else -1) * min(max(0.25 * near, 0.05), 0.2)
        places = [low + near * (high - low), low + beyond * (high - low)]
    return setting(best), trials.get(best, 0.0), tried


def pilot_flags(flags: str, steps: int) -> str:
    """Flags for a run with the same pilots that is otherwise cheap: one chain, at most twice `steps`."""
    words = flags.split()
    chains = int(words.pop(words.index("--chains") + 1)) if "--chains" in words else 8
    kept = [word for word in words if word != "--chains"]
    pilots = [] if "--pilot-chains" in kept else [f"--pilot-chains {min(max(chains, 16), 256)}"]
    return " ".join([*kept, *pilots, f"--chains 1 --max-steps {2 * steps}"])
