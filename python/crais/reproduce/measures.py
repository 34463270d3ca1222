"""The numbers that tables show, by name: nats where they are of log Z or log p(x)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from crais.reproduce.cells import Variant

_NONE = torch.full((1,), torch.nan, dtype=torch.float64)


def _mean(values: Tensor) -> float:
    return float(values.double().mean())


def _sd(values: Tensor) -> float:
    return float(values.double().std()) if values.numel() > 1 else math.nan


def _std_error(values: Tensor) -> float:
    return _sd(values) / math.sqrt(max(1, values.numel()))


def _over(a: float, b: float) -> float:
    return float(torch.tensor(a, dtype=torch.float64) / b)


def measures_of(
    truth: Tensor | None,  # [] or [N], nats
    has_images: bool,  # repetitions are seeds; else seeds and problems
    choosing: int,  # repetitions that only chose the setting
    upper: bool,  # of the upper bounds, whose weights have mean 1 / Z
    masses: Tensor | None,  # [M] of the modes of the target, if it has modes
    result: Variant,
    first: Variant | None = None,  # of the rows that are compared; they share seeds, so starting particles
) -> dict[str, float]:
    """The measures of a result, NaN where there is none. All names are there for any result.

    Errors are of estimates, over repetitions (bias, abs, rmse), or of single images (image_rmse,
    image_most, silent: off by a nat without a flag). z says by how many standard errors the mean of
    `ratio` misses 1. Wrong is off by more than half a nat; caught is the share of these with a flag,
    alarms that of the others. Modes with a tenth of their mass or more are reached; astray is the total
    variation between the masses that a run finds and the true ones. The divergence of a plan falls from
    `start` by `fall` a step (least squares); `bend` is its largest distance from a line, relative to start.
    """

    def repetitions(each: Tensor) -> Tensor:
        return each.mean(1) if has_images else each.flatten()[choosing:]

    names = ("upper", "upper_std_error") if upper else ("log_normalizer", "std_error")
    value, std_error, flagged = *map(result.column, names), result.column("flags") != 0  # [S, N]
    calibrates, known = truth is not None and value.numel() > 1, truth is not None
    truth = torch.zeros((), dtype=torch.float64) if truth is None else truth
    error, above, apart = value - truth, _NONE, _NONE
    errors, values = repetitions(error), repetitions(value)
    base = first.column("log_normalizer") if first is not None and first is not result else _NONE[:0]
    if base.numel() == value.numel():
        others, apart = repetitions(base - truth), value - base
        above = errors.abs() - others.abs() if known else others - errors
    off, flags, se = (each.flatten() if calibrates else _NONE[:0] for each in (error, flagged, std_error))
    flags, wrong = flags == 1, off.abs() > 0.5
    plans = [d for d in result.each("divergence") if len(d) > 0]
    steps = [torch.arange(len(d), dtype=torch.float64) for d in plans]
    centred = [step - step.mean() for step in steps]

    means = {"mean": values, "bias": errors, "above_first": above, "from_first": apart, "flagged": flagged}
    means |= {"ratio": (-off if upper else off).exp(), "wrong": wrong, "caught": flags[wrong], "alarms": flags[~wrong]}
    means |= {"within_1": off.abs() <= se, "within_196": off.abs() <= 1.96 * se}
    means |= {name: result.column(name) for name in ("ess", "accept_prob")}
    falls = {
        "start": [d[0] for d in plans],
        "bend": [(d / d[0] - 1 + step / step[-1]).abs().max() for d, step in zip(plans, steps, strict=True)],
        "fall": [(x * d).sum() / x.square().sum() for d, x in zip(plans, centred, strict=True)],
    }
    means |= {name: torch.stack(each) if each else _NONE for name, each in falls.items()}
    means |= {"truth": truth, "abs": errors.abs()} if known else {"truth": _NONE, "abs": _NONE}
    means |= {"reached": _NONE, "astray": _NONE}
    if masses is not None:
        found = result.first("masses").view(-1, len(masses))  # of each run
        means |= {"reached": (found >= 0.1 * masses).sum(1), "astray": 0.5 * (found - masses).abs().sum(1)}
    m = {name: _mean(each) for name, each in means.items()} | {f"{name}_se": _std_error(x) for name, x in means.items()}
    m |= {name: result.mean(name) for name in ("base", "tuning", "estimating", "transitions", "training_seconds")}
    return m | {
        "done": math.nan if result.failed else 1.0,
        "evaluations": result.mean("base", "tuning", "estimating"),
        "first_start": float((*result.first("divergence"), math.nan)[0]),
        "rmse": float(errors.square().mean().sqrt()) if known else math.nan,
        "t": _over(m["above_first"], m["above_first_se"]),
        "sd": _sd(values),
        "data_se": _std_error(value.mean(0)),
        "chains_se": float(std_error.square().sum().sqrt()) / std_error.numel(),
        "image_rmse": float(error.square().mean().sqrt()),
        "image_most": float(error.abs().max()),
        "silent": math.nan if result.failed else float(((error.abs() > 1) & ~flagged).sum()),
        "farthest": float(apart.abs().max()),
        "z": _over(m["ratio"] - 1, m["ratio_se"]),
        "spread": _sd(off) / math.sqrt(_mean(se.square())),
        "reported_bias": 0.5 * _mean(std_error.square()) if upper else _mean(result.column("bias")),
        "modes": math.nan if masses is None else len(masses),
    }


def choose(values: list[Tensor], choosing: int, truth: float) -> tuple[int, int]:
    """Between settings [S] of log Z, whose first `choosing` repetitions choose; the others report.

    The chosen one has the highest mean, which is honest since every estimate is a lower bound; the
    oracle's has the least error of the reported mean. -1 where all have failed (NaN).
    """
    means = {i: _mean(each[:choosing]) for i, each in enumerate(values)}
    errors = {i: abs(_mean(each[choosing:]) - truth) for i, each in enumerate(values)}
    means, errors = ({i: x for i, x in each.items() if x == x} for each in (means, errors))
    return max(means, key=lambda i: means[i], default=-1), min(errors, key=lambda i: errors[i], default=-1)
