"""The numbers that tables show, by name: nats where they are of log Z or log p(x)."""

from __future__ import annotations

import math
import torch
from torch import Tensor

from crais.reproduce.cells import Variant

_NOTHING = torch.full((1,), torch.nan, dtype=torch.float64)


def _std_error(values: Tensor) -> float:
    return _sd(values) / math.sqrt(values.numel())


def _sd(values: Tensor) -> float:
    return float(values.flatten().std()) if values.numel() > 1 else math.nan


def _mean(values: Tensor) -> float:
    return float(values.double().mean())


def _over(a: float, b: float) -> float:
    return float(torch.tensor(a, dtype=torch.float64) / b)


def measures_of(
    result: Variant,
    truth: Tensor | None = None,  # [] or [N], nats
    has_images: bool = False,  # repetitions are seeds; else seeds and problems
    choosing: int = 0,  # repetitions that only chose the setting
    upper: bool = False,  # of the upper bounds
    masses: Tensor | None = None,  # [M] of the modes of the target, if it has modes
    first: Variant | None = None,  # of the rows that are compared
) -> dict[str, float]:
    """The measures of a result, NaN where there is none. All names are there for any result.

    Errors are of estimates, over repetitions: bias, abs, rmse. Rows that are compared share their
    seeds, and so their starting particles: above_first, t. Those of single images are image_rmse,
    image_most, silent (off by a nat without a flag).

    Calibration: weights of lower bounds have mean Z, those of upper bounds 1 / Z, and z says by how
    many standard errors the mean of `ratio` misses 1. Wrong is off by more than half a nat; caught is
    the share of these with a flag, alarms that of the others.

    The masses of modes in each run: modes with a tenth of their mass or more are reached; astray is the
    total variation between the masses and the true ones.
    """

    def repetitions(each: Tensor) -> Tensor:
        if has_images:
            return each.mean(1)
        return each.flatten()[choosing :] if each.numel() > choosing else _NOTHING

    of_upper = upper and len(result.each("upper")) > 0
    value, flagged = result.column("upper" if of_upper else "log_normalizer"), result.column("flags") != 0  # [S, N]
    std_error = result.column("upper_std_error" if of_upper else "std_error")
    calibrates, known = truth is not None and value.numel() > 1, math.nan if truth is None else 1.0
    truth = torch.zeros((), dtype=torch.float64) if truth is None else truth
    error = value - truth
    errors, values = repetitions(error), repetitions(value)
    above = apart = _NOTHING
    if first is not None and first is not result:
        base = first.column("log_normalizer")
        if base.numel() == value.numel():
            others, apart = repetitions(base - truth), value - base
            above = errors.abs() - others.abs() if known == 1 else others - errors

    off, flags, se = (each.flatten() if calibrates else _NOTHING for each in (error, flagged, std_error))
    flags, wrong = flags == 1, off.abs() > 0.5
    shares = {"within_1": off.abs() <= se, "within_196": off.abs() <= 1.96 * se, "wrong": wrong}
    shares |= {"caught": flags[wrong], "alarms": flags[~wrong]}

    found, reached, astray = result.first("masses"), math.nan, _NOTHING
    if masses is not None and len(found) > 0:
        found = found.view(-1, len(masses))
        reached = _mean((found >= 0.1 * masses).sum(1))
        astray = 0.5 * (found - masses).abs().sum(1)

    means = {"mean": values, "bias": errors, "above_first": above, "astray": astray}
    means |= {"ratio": (-off if upper else off).exp(), **_falls(result)}
    m = {name: float(each.mean()) for name, each in means.items()}
    m |= {f"{name}_se": _std_error(each) for name, each in means.items()}
    m |= {name: _mean(result.column(name)) for name in ("ess", "accept_prob")}
    m |= {name: result.mean(name) for name in ("base", "tuning", "estimating", "transitions", "training_seconds")}
    m |= {name: _mean(which) if calibrates else math.nan for name, which in shares.items()}
    done, first_start = math.nan if result.failed else 1.0, result.first("divergence")[:1]
    return m | {
        "done": done,
        "evaluations": result.mean("base", "tuning", "estimating"),
        "first_start": float(first_start) if len(first_start) else math.nan,
        "truth": _mean(truth) * known,
        "abs": _mean(errors.abs()) * known,
        "rmse": float(errors.square().mean().sqrt()) * known,
        "t": _over(m["above_first"], m["above_first_se"]),
        "sd": _sd(values),
        "data_se": _std_error(value.mean(0)),
        "chains_se": float(std_error.square().sum().sqrt()) / std_error.numel(),
        "image_rmse": float(error.square().mean().sqrt()),
        "image_most": float(error.abs().max()),
        "flagged": _mean(flagged),
        "silent": float(((error.abs() > 1) & ~flagged).sum()) * done,
        "from_first": _mean(apart),
        "farthest": float(apart.abs().max()),
        "z": _over(m["ratio"] - 1, m["ratio_se"]),
        "spread": _sd(off) / math.sqrt(_mean(se.square())),
        "reported_bias": 0.5 * _mean(std_error.square()) if upper else _mean(result.column("bias")),
        "modes": math.nan if masses is None else len(masses),
        "reached": reached,
    }


def _falls(result: Variant) -> dict[str, Tensor]:
    """How the divergence falls along the plans: from `start`, with the largest distance `bend` of
    D / D_0 from the line 1 - i / M, and the least-squares slope `fall` of D a step."""
    falls = []
    for d in result.each("divergence"):
        if len(d) > 0:
            step = torch.arange(len(d), dtype=torch.float64)
            x = step - step.mean()
            bend, fall = (d / d[0] - 1 + step / step[-1]).abs().max(), (x * d).sum() / x.square().sum()
            falls.append(torch.stack([d[0], bend, fall]))
    columns = torch.stack(falls, 1) if falls else [_NOTHING] * 3
    return dict(zip(("start", "bend", "fall"), columns, strict=True))


def choose(values: list[Tensor], choosing: int, truth: float) -> tuple[int | None, int | None]:
    """Between settings [S] of log Z, whose first `choosing` repetitions choose; the others report.

    The chosen one has the highest mean, which is honest since every estimate is a lower bound; the
    oracle's has the least error of the reported mean. None where all have failed (NaN).
    """
    means = {i: _mean(each[:choosing]) for i, each in enumerate(values)}
    errors = {i: abs(_mean(each[choosing:]) - truth) for i, each in enumerate(values)}
    means, errors = ({i: x for i, x in each.items() if x == x} for each in (means, errors))
    return max(means, key=lambda i: means[i], default=None), min(errors, key=lambda i: errors[i], default=None)
