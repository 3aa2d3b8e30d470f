"""Confidence intervals and p-values. Values are logs of ratios; figures are ratios minus one: 0.06 for 6 % more."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean
from typing import Any, TypeVar

from rlprof.analysis.trimmed import Mean, cut_of, trimmed_mean
from rlprof.errors import MissingLibraryError

ALPHA = 0.05
"""Error rate of an interval that is computed once. Its complement is the confidence."""
POWER = 0.8
FEWEST = 3
"""Values for an interval or a p-value. The t-distribution of two values is so wide that its ends are absurd."""

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class Interval:
    """How much faster B is: 0.06 for 6 %. The ends of the interval are None with too few pairs."""

    estimate: float
    low: float | None
    high: float | None

    @property
    def beyond_zero(self) -> bool:
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    @property
    def turned(self) -> Interval:
        """The same for how much slower B is."""
        negative = self.map(lambda value: -value)
        return Interval(negative.estimate, negative.high, negative.low)

    def map(self, function: Callable[[float], float]) -> Interval:
        ends = (None if end is None else function(end) for end in (self.low, self.high))
        return Interval(function(self.estimate), *ends)


def interval(logs: Sequence[float], alpha: float) -> Interval:
    enough = len(logs) >= FEWEST
    return around(trimmed_mean(logs), alpha) if enough else Interval(math.expm1(fmean(logs)), None, None)


def p_value(values: Sequence[float]) -> float | None:
    return chance_of(trimmed_mean(values)) if len(values) >= FEWEST else None


def around(mean: Mean, alpha: float) -> Interval:
    """Student's t-interval."""
    half = float(t_distribution().ppf(1 - alpha / 2, mean.freedom)) * mean.error
    return Interval(math.expm1(mean.value), math.expm1(mean.value - half), math.expm1(mean.value + half))


def chance_of(mean: Mean) -> float:
    """Two-sided p-value: the probability of a mean this far from zero if the truth is zero."""
    if not mean.error:
        return 0.0 if mean.value else 1.0
    return float(2 * t_distribution().sf(abs(mean.value) / mean.error, mean.freedom))


def least_seen(error: float, freedom: float, alpha: float) -> float:
    """The effect that would be found four times out of five with this standard error and these degrees of freedom."""
    t = t_distribution()
    return math.expm1(float(t.ppf(1 - alpha / 2, freedom) + t.ppf(POWER, freedom)) * error)


def pairs_to_show(effect: float, logs: Sequence[float], alpha: float) -> int | None:
    """Number of pairs, as noisy as these, that find this effect four times out of five. None above 1,000."""
    scatter = trimmed_mean(logs).error * math.sqrt(len(logs))
    for count in range(2, 1001):
        if least_seen(scatter / math.sqrt(count), count - 2 * cut_of(count) - 1, alpha) <= effect:
            return count
    return None


def permutation_p(logs: Sequence[float]) -> float | None:
    """Sign-flip test: if A and B were the same, the sign of each pair would be random. Returns the fraction of all sign
    combinations with a sum at least this far from zero; None above 12 pairs, which have too many combinations."""
    if not 2 <= len(logs) <= 12:
        return None
    observed = abs(sum(logs)) * (1 - 1e-12)
    ways = 1 << len(logs)
    as_far = sum(
        abs(sum(value if way >> place & 1 else -value for place, value in enumerate(logs))) >= observed
        for way in range(ways)
    )
    return as_far / ways


def jackknife(parts: Sequence[Part], of: Callable[[Sequence[Part]], float], alpha: float, least: int = 3) -> Interval:
    """A figure of all parts, with an interval by leaving out each part in turn. None with fewer than `least` parts."""
    count = len(parts)
    if count < least:
        return Interval(of(parts), None, None)
    return left_out(of(parts), [of([*parts[:place], *parts[place + 1 :]]) for place in range(count)], alpha)


def left_out(whole: float, without: Sequence[float], alpha: float) -> Interval:
    """The same from known figures: of all parts, and without each of them."""
    count = len(without)
    mean = sum(without) / count
    error = math.sqrt((count - 1) / count * sum((one - mean) ** 2 for one in without))
    half = _t_quantile(1 - alpha / 2, count - 1) * error
    return Interval(whole, whole - half, whole + half)


def _t_quantile(probability: float, freedom: float) -> float:
    """Student's t by the expansion of Cornish and Fisher, within 1 % from 3 degrees of freedom on: reports have
    intervals even where scipy is not installed."""
    z = NormalDist().inv_cdf(probability)
    first = (z**3 + z) / (4 * freedom)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    return z + first + second + third


def t_distribution() -> Any:
    try:
        from scipy.stats import t  # noqa: PLC0415 - slow to import, and only a comparison needs it
    except ImportError as error:
        raise MissingLibraryError("comparing", "scipy", "compare") from error
    return t
