"""Results of estimates, and their comparison."""

from __future__ import annotations

import functools
import html
import importlib
import io
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from crais.captured import Function
from crais.densities import Density
from crais.errors import UsageError
from crais.native import extension
from crais.particles import inference_data, resampled
from crais.works import AcceptanceRatio, from_work

Array = NDArray[Any]


class Control:
    """The control of a run: base and plan on images that the model draws itself, in nats.

    Such an image comes with an exact draw of its posterior, from which a reversed chain gives an
    upper bound; log p(x) lies between the bounds on average [Grosse, Ghahramani & Adams 2015].

    lower, upper   means of the bounds; gap is their difference, se its standard error
    excess         the mean gap that bias does not explain, without the image where it is largest
    images         how many there are; of missed ones errors do not explain a gap above 1 nat
    """

    def __init__(self, control: dict[str, Any]) -> None:
        self.images: int = control["images"]
        self.missed: int = control["missed"]
        self.lower, self.upper, self.gap, self.se, self.excess = (
            _number(control[name]) for name in ("lower", "upper", "gap", "gap_std_error", "excess")
        )

    def __repr__(self) -> str:
        return f"Control(gap={self.gap:.4g}, se={self.se:.2g}, images={self.images}, missed={self.missed})"


class Estimates:
    """What results of images and of densities share. The attributes are those of the first method.

    Floats: `mean` of the estimates; mc_se, its Monte Carlo standard error; bias, its expected bias,
    at most 0, NaN where unknown; ess, the effective fraction of the chains, in (0, 1].

    Arrays [N], an entry an image or replicate, means over repeats: std_error, bias_each, ess_each
    in nats; flags: sets of bits, 0 where the estimate is to be trusted (`flag_words` names them);
    pareto_k, accept_prob, evaluations where the method has them; indices in the data.

    flagged: True where the result as a whole is not to be trusted; `reasons` say why, and what
    would mend it. `warnings` say why the numbers may not mean what you think. `methods` has the
    numbers of each method. A notebook shows the tables, with the `report` below a fold.
    """

    _csv = "per_image.csv"

    def __init__(self, report: Any) -> None:
        self._report = report
        self.summary: dict[str, Any] = report.summary
        self.indices: Array = np.asarray(report.indices)
        self._tables: dict[str, dict[str, Array]] = {
            method: {name: column.numpy() for name, column in columns.items()} for method, columns in report.methods
        }
        self.methods: list[dict[str, Any]] = self.summary["results"]
        self.warnings: list[str] = self.summary.get("warnings", [])
        first = self.methods[0]
        self.method: str = first["method"]
        self.mean = _number(first.get("log_likelihood", first.get("log_normalizer")))
        self.mc_se = _number(first["monte_carlo_std_error"])
        self.bias = _number(first["estimated_bias"])
        self.ess = _number(first["ess"]["mean"])
        self.reasons: list[str] = [f"{r['what']} ({r['remedy']})" for r in first.get("reasons", [])]
        self.flagged = bool(self.reasons)

        table = self._tables[self.method]
        self._each: Array = table["log_normalizer"].mean(0)
        repeats = len(table["std_error"])
        self.std_error: Array = np.sqrt((table["std_error"] ** 2).sum(0)) / repeats
        self.flags: Array = np.bitwise_or.reduce(table["flags"], 0)
        self.bias_each, self.ess_each = self._mean_of("bias"), self._mean_of("ess")
        self.pareto_k, self.accept_prob = self._mean_of("pareto_k"), self._mean_of("accept_prob")
        self.evaluations = self._mean_of("evaluations")

    def _mean_of(self, column: str) -> Array:
        table = self._tables[self.method]
        return table[column].mean(0) if column in table else np.full(len(self), math.nan)

    def __len__(self) -> int:
        return len(self.indices)

    def flag_words(self, i: int) -> str:
        """The names of estimate i's flags, as "ess+tail"; "" where it has none."""
        words: str = extension().flag_words(int(self.flags[i]))
        return words

    def __repr__(self) -> str:
        table: str = self._report.text(80)
        return table

    def details(self) -> str:
        """The other numbers of each method, as tables: base, ESS, acceptance, cost, rounds."""
        tables: str = self._report.details(80)
        return tables

    def _repr_html_(self) -> str:
        table = html.escape(self._report.text(0))
        page = html.escape(self._report.file("report.html"))
        return (
            f"<pre style='line-height: 1.2'>{table}</pre><details><summary>Report, with pictures"
            f'</summary><iframe sandbox="allow-scripts" srcdoc="{page}" style="width: 100%; height: 40rem; border: 0">'
            "</iframe></details>"
        )

    def to_dict(self) -> dict[str, Any]:
        """The content of summary.json, as a dictionary."""
        return dict(self.summary)

    def to_pandas(self) -> Any:
        """Its CSV file as a DataFrame, a row for each estimate, method and repeat. Needs pandas."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise ImportError("to_pandas needs pandas: pip install pandas") from None
        return pandas.read_csv(io.StringIO(self._report.file(self._csv)), keep_default_na=True)

    def save(self, folder: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Writes a folder as the programs do: summary.json, CSV files and chunks for `resume`.

        Raises UsageError if the folder holds results and `overwrite` is False.
        """
        self._report.save(os.fspath(folder), overwrite)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes the page report.html: tables, reasons and pictures.

        The page is one file, with charts to zoom into, and loads no other.
        """
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._report.file("report.html"))


class Result(Estimates):
    """Estimates of log p(x) of images, in nats, with their errors.

    An estimate is a lower bound on average, because the logarithm is concave (Jensen's inequality).

    log_likelihood   [N], nats; `mean` is its mean
    data_se          the standard error of `mean` because there are only these images
    control          what the run makes of images that the model draws, a `Control`; None where it has none
    lower, upper, gap, upper_each     of certificates alone (method="bidirectional")
    distance, distance_each    of certificates of your images: a bound on the total variation between
                     the starts of reversed chains and the posterior; distance_se, its Monte Carlo
                     error. met, met_each: the share of coupled chains that met
    images           what was evaluated
    """

    __doc__ = (__doc__ or "") + (Estimates.__doc__ or "")

    def __init__(self, report: Any, images: Any = None) -> None:
        super().__init__(report)
        self.images = images
        self.log_likelihood = self._each
        first = self.methods[0]
        self.data_se = _number(first.get("data_std_error"))
        certificate = first.get("certificate", {})
        if certificate:
            self.lower, self.upper, self.gap = self.mean, _number(certificate["upper"]), _number(certificate["gap"])
            self.upper_each = self._mean_of("upper")
        if "distance" in certificate:
            self.distance, self.met = _number(certificate["distance"]), _number(certificate["met"])
            self.distance_se = _number(certificate["distance_monte_carlo_std_error"])
            self.distance_each, self.met_each = self._mean_of("distance"), self._mean_of("met")
        control = self.summary.get("control", {})
        self.control = None if "gap" not in control else Control(control)

    def __getattr__(self, name: str) -> Any:
        certifies = name.split("_")[0] in ("lower", "upper", "gap", "distance", "met")
        raise AttributeError(f"the result has no {name}{': call crais.certify(model, images)' * certifies}")


class Evidence(Estimates):
    """Estimates of log Z of one density by independent replicates, in nats, with their error.

    log_z            the log of the mean of all replicates' estimates of Z. The mean is unbiased for
                     Z. `mean`, the mean of their logs, is lower by about half the variance of one
                     log. Where replicates disagree, log_z is close to the highest of them
    log_normalizer   [N], nats, of each replicate
    notes            what crais made of the density that it got
    rounds           before the estimate: evaluations of a replicate, log Z and its error (standard
                     error and bias together), nats. Empty where `error` did not decide the length
    ratio            with `draws` the `AcceptanceRatio` of all anneals both ways, which log_z and,
                     where replicates do not spread more, mc_se come from; else None
    barrier          the integral over beta of the standard deviation of the work rate, from the base
                     to the density [Syed et al. 2024]; None without rounds of chains
    """

    __doc__ = (__doc__ or "") + (Estimates.__doc__ or "")
    _csv = "per_problem.csv"

    def __init__(self, report: Any, density: Density | None = None) -> None:
        super().__init__(report)
        self._point: Function = (lambda z: z) if density is None else density.point
        self._about: Function = (lambda draws: {}) if density is None else density.about
        self.notes: list[str] = self.summary.get("notes", [])
        self.log_normalizer = self._each
        logs = torch.from_numpy(self._tables[self.method]["log_normalizer"])
        self.log_z = float(logs.flatten().logsumexp(0)) - math.log(logs.numel())
        names = {"evaluations": "evaluations", "log_normalizer": "log_z", "error": "error"}
        self.rounds: list[dict[str, float]] = [
            {names[name]: _number(value) for name, value in each.items()} for each in self.summary.get("rounds", [])
        ]
        self.barrier: float | None = self.summary.get("barrier")
        self.ratio: AcceptanceRatio | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of log Z, by Student's t."""
        reach = extension().interval_width(len(self)) * self.mc_se
        return self.log_z - reach, self.log_z + reach

    def _with_ratio(self) -> Evidence:
        """By works both ways, where anneals run back from draws of the user's."""
        works = -torch.cat([each.transpose(1, 2) for each in self._report.works])  # [R, K, 2]
        self.ratio = from_work(*works.flatten(0, 1).T)
        each = np.array([from_work(*replicate.T).log_z for replicate in works])
        self.log_z = self.ratio.log_z
        self.mc_se = max(self.ratio.mc_se, float(each.std(ddof=1)) / math.sqrt(len(each)))
        words = "+".join(map(self.flag_words, range(len(self)))).split("+")
        self.reasons += [*self.ratio.reasons, *(_OF_DRAWS[word] for word in _OF_DRAWS if word in words)]
        self.flagged = bool(self.reasons)
        return self

    def __repr__(self) -> str:
        return super().__repr__() + (f"\nBoth ways together:\n{self.ratio!r}\n" if self.ratio else "")

    @functools.cached_property
    def samples(self) -> Array | dict[str, Array]:
        """The particles of all replicates [N, ...], in the density's coordinates.

        Models, and priors or supports by name, give a dict of arrays: of a model all its values
        within their bounds, those that it computes too. The particles' weights are `log_weights`.
        Raises UsageError where no particles were kept.
        """
        return self._theta(self._particles()[0].flatten(0, 1))

    @property
    def log_weights(self) -> Array:
        """Log weights [N] of `samples`, nats. The log of the mean weight is `log_z`."""
        weights: Array = self._particles()[1].flatten().numpy()
        return weights

    def to_arviz(self, draws: int | None = None) -> Any:
        """ArviZ's InferenceData, in which each replicate is a chain. Needs arviz.

        draws   draws of each replicate; as many as it has particles if left out

        Draws are resampled by weight, so some repeat: `ess` says how many count. Of a model there are
        its dims, observed data and log likelihoods too, where it says them. `attrs` have log Z.
        """
        z, log_weights = self._particles()
        z = resampled(z, log_weights, draws or z.shape[1], int(self.summary["settings"]["seed"]))
        theta = self._theta(z.flatten(0, 1))
        named = theta if isinstance(theta, dict) else {"theta": theta}
        posterior = {name: one.reshape(*z.shape[:2], *one.shape[1:]) for name, one in named.items()}
        data = inference_data({"posterior": posterior, **self._about(posterior)})
        words = [self.flag_words(i) for i in range(len(self))]
        data.attrs.update(log_z=self.log_z, mc_se=self.mc_se, flags=words)
        data.attrs.update(flagged=int(self.flagged), reasons="; ".join(self.reasons))
        return data

    def _particles(self) -> tuple[Tensor, Tensor]:
        """z [R, K, dim], where chains moved, and log weights [R, K], whose mean is an estimate of Z."""
        kept: tuple[Tensor, Tensor] | None = self._report.particles
        if kept is None:
            raise UsageError(
                "samples: the run kept no particles. It keeps those of the method ais, up to 256 MiB, "
                "without chunks that `resume` read"
            )
        return kept

    def _theta(self, z: Tensor) -> Array | dict[str, Array]:
        """theta [N, ...] of z [N, dim]; a dict where theta has names."""
        with torch.no_grad():
            theta = self._point(z)
        if isinstance(theta, Mapping):
            return {str(name): one.numpy(force=True) for name, one in theta.items()}
        plain: Array = theta.numpy(force=True)
        return plain


_OF_DRAWS = {
    "modes": "a search has found mass that the draws lack (run more chains, from points far apart)",
    "apart": "coupled chains from draws of different chains do not meet as such of one chain do: each "
    "has seen a part of the density (run longer chains)",
}


def _number(value: Any) -> float:
    """A number of a summary as a float; NaN for null and for words, as JSON has no NaN."""
    return math.nan if value is None or isinstance(value, str) else float(value)


@dataclass(repr=False)
class Comparison:
    """Paired differences `after` - `before` of the same images, nats.

    mean           the mean difference
    data_se, mc_se its standard errors: over images, and of Monte Carlo alone
    low, high      its 95% interval over all such images, by Student's t
    unpaired_se    the error that two separate sets of images would have
    bias           the expected bias of the mean; NaN where unknown
    share_better   the share of images that gained; clearly_better and clearly_worse count those
                   that changed by more than two Monte Carlo errors
    flagged        how many images are flagged in either result
    unflagged      (mean, data_se, mc_se) of the others; None where no image is flagged
    difference, std_error  [N], of each image; the error is Monte Carlo's
    """

    mean: float
    data_se: float
    mc_se: float
    low: float
    high: float
    unpaired_se: float
    bias: float
    share_better: float
    clearly_better: int
    clearly_worse: int
    flagged: int
    unflagged: tuple[float, float, float] | None
    difference: Array
    std_error: Array

    def __repr__(self) -> str:
        lines = [
            f"after - before: {self.mean:+.3f} nats, 95% interval {self.low:+.3f} to {self.high:+.3f}; "
            f"SE over {len(self.difference)} images {self.data_se:.3f} (of separate sets "
            f"{self.unpaired_se:.3f}), by the chains {self.mc_se:.3f}",
            f"{self.share_better:.0%} of the images gained; clearly better {self.clearly_better}, "
            f"clearly worse {self.clearly_worse}",
        ]
        if self.unflagged is not None:
            lines.append(f"without {self.flagged} flagged images: {self.unflagged[0]:+.3f}")
        return "\n".join(lines)


def compare(before: Result, after: Result) -> Comparison:
    """Paired differences `after` - `before` of two results on the same images, nats.

    >>> crais.compare(crais.evaluate(old, images), crais.evaluate(new, images))

    Pairing cancels most of the spread between images, so the error is far smaller than that of
    two separate means. Raises UsageError where the images differ, or a result is of a density:
    `bayes_factor` compares these. Cost: no evaluation.
    """
    for result in (before, after):
        if not isinstance(result, Result):
            raise UsageError("compare takes two results of evaluate; bayes_factor two of densities")
    one, two = (result.summary["images"]["sha256"] for result in (before, after))
    if one != two or len(before) != len(after):
        raise UsageError("the results have different images: evaluate both models on the same images")
    estimates = [
        [*map(torch.from_numpy, (one.log_likelihood, one.std_error, one.bias_each)), (one.flags != 0).tolist()]
        for one in (after, before)
    ]
    found: dict[str, Any] = extension().compare(*estimates)
    found = {name: value.tolist() if isinstance(value, Tensor) else value for name, value in found.items()}
    found |= {name: np.asarray(found[name]) for name in ("difference", "std_error")}
    return Comparison(**found)


@dataclass(frozen=True)
class BayesFactor:
    """The log ratio of two evidences, log Z1 - log Z2, nats.

    log_ratio  the difference of the two results' log_z
    mc_se      its Monte Carlo error; the two results are independent
    low, high  two errors below and above
    flagged    True where one of the results, or half of its replicates, is not to be trusted;
               `reasons` say which and why
    notes      what else could make it wrong, such as constants that a model's language drops
    """

    log_ratio: float
    mc_se: float
    flagged: bool
    reasons: list[str]
    notes: list[str]

    @property
    def low(self) -> float:
        return self.log_ratio - 2 * self.mc_se

    @property
    def high(self) -> float:
        return self.log_ratio + 2 * self.mc_se

    def __repr__(self) -> str:
        factor = f"{math.exp(self.log_ratio):.4g}" if abs(self.log_ratio) < 500 else "exp of it"
        lines = [f"log Z1 - log Z2: {self.log_ratio:+.4f} nats; Monte Carlo SE {self.mc_se:.2g}; Bayes factor {factor}"]
        lines += [f"Flagged: {reason}." for reason in self.reasons]
        return "\n".join(lines + [f"Note: {note}." for note in self.notes])


def bayes_factor(first: Evidence, second: Evidence) -> BayesFactor:
    """The Bayes factor of two models, as log Z1 - log Z2 in nats, with its error.

    >>> crais.bayes_factor(crais.log_normalizer(...), crais.log_normalizer(...))

    Both results must be of the same data, and have every constant of likelihood and prior. Raises
    UsageError where a result is of images. Cost: no evaluation.
    """
    for result in (first, second):
        if not isinstance(result, Evidence):
            raise UsageError("bayes_factor takes two results of log_normalizer")
    each = {"the first": first, "the second": second}
    reasons = [f"{name}: {line}" for name, result in each.items() for line in _doubts(result)]
    notes = [f"{name}: {note}" for name, result in each.items() for note in result.notes]
    error = math.hypot(first.mc_se, second.mc_se)
    return BayesFactor(first.log_z - second.log_z, error, bool(reasons), reasons, notes)


def _doubts(result: Evidence) -> list[str]:
    """Reasons to doubt a result: its own, and those of its replicates if half are flagged."""
    flagged = [i for i in range(len(result)) if result.flags[i]]
    if 2 * len(flagged) < len(result):
        return result.reasons
    words = sorted({word for i in flagged for word in result.flag_words(i).split("+")})
    return [*result.reasons, f"{len(flagged)} of {len(result)} replicates: {', '.join(words)}"]
