"""What an estimate has come to."""

from __future__ import annotations

import html
import importlib
import io
import json
import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crais.captured import Function
from crais.densities import Density
from crais.errors import UsageError
from crais.native import extension
from crais.particles import Particles, flattened, to_arviz

Array = NDArray[Any]


class Result:
    """Estimates of the first method, in nats; `methods` has all of them.

    The estimates of log p(x), or of log Z, are lower bounds on average.

    Floats, of all images (or replicates of a density) together:
        mean       the mean estimate
        data_se    its standard error as a mean over these images: the data's share
        mc_se      its standard error by the chains alone: Monte Carlo's share
        bias       to be expected of it, at most 0; NaN where unknown
        ess        effective fraction of the chains, in (0, 1]
        lower, upper, gap     of certificates (method="bidirectional"); else NaN

    flagged: True where the result as a whole is not to be trusted; `reasons` say why, and what would
    mend it.

    Arrays [N], an entry an image, means over repeats:
        log_likelihood (log_normalizer for densities), std_error, bias_each, ess_each, flags: sets
        of bits, 0 where the estimate is to be trusted (`flag_words` says them); upper_each,
        pareto_k, accept_prob, evaluations where the method has them; indices in the data.

    Of a density, log_z is the log of the mean of all estimates of Z, and mean the mean of their
    logs. `notes` say what crais has made of the density that it was given. `samples` and
    `log_weights` are its particles, and `to_arviz()` has draws of them.

    `warnings` are lines that say why the numbers may not mean what one thinks: [] where all is
    well. In a notebook it shows itself as its tables, and its `report` below a fold.
    """

    def __init__(
        self, report: Any, images: Any = None, density: Density | None = None
    ) -> None:
        self._report = report
        self.images = images
        self._point: Function = (lambda z: z) if density is None else density.point
        self.summary: dict[str, Any] = json.loads(report.summary)
        self.notes: list[str] = self.summary.get("notes", [])
        self.indices: Array = np.asarray(report.indices)
        self._tables: dict[str, dict[str, Array]] = {
            method: {name: column.numpy() for name, column in columns.items()}
            for method, columns in report.methods
        }
        self.methods: list[dict[str, Any]] = self.summary["results"]
        self.warnings: list[str] = self.summary.get("warnings", [])
        first = self.methods[0]
        self.method: str = first["method"]
        self.mean = _number(first.get("log_likelihood", first.get("log_normalizer")))
        self.data_se = _number(first.get("data_std_error"))
        self.mc_se = _number(first["monte_carlo_std_error"])
        self.bias = _number(first["estimated_bias"])
        self.ess = _number(first["ess"]["mean"])
        certificate = first.get("certificate", {})
        self.upper = _number(certificate.get("upper"))
        self.lower = self.mean if certificate else math.nan
        self.gap = _number(certificate.get("gap"))

        self.reasons: list[str] = [f"{r['what']} ({r['remedy']})" for r in first.get("reasons", [])]
        self.flagged = bool(self.reasons)

        table = self._tables[self.method]
        self.log_normalizer: Array = table["log_normalizer"].mean(0)
        repeats = len(table["std_error"])
        self.std_error: Array = np.sqrt((table["std_error"] ** 2).sum(0)) / repeats
        self.flags: Array = np.bitwise_or.reduce(table["flags"], 0)
        self.bias_each = self._mean_of("bias")
        self.ess_each = self._mean_of("ess")
        self.upper_each = self._mean_of("upper")
        self.pareto_k = self._mean_of("pareto_k")
        self.accept_prob = self._mean_of("accept_prob")
        self.evaluations = self._mean_of("evaluations")

    def _mean_of(self, column: str) -> Array:
        table = self._tables[self.method]
        return table[column].mean(0) if column in table else np.full(len(self), math.nan)

    @property
    def log_z(self) -> float:
        """The log of the mean of all estimates of Z, nats; of a density.

        The mean is unbiased for Z. `mean` is the mean of their logs: lower, by half the variance
        of one. Where replicates disagree, log_z is about the highest of them.
        """
        if not self._is_density():
            raise AttributeError("log_z is of a density; `log_likelihood` has the images' estimates")
        return _log_mean(self._tables[self.method]["log_normalizer"])

    @property
    def rounds(self) -> list[dict[str, float]]:
        """The rounds before the estimate of a density: evaluations of a replicate, log Z and its
        error (standard error and bias together), nats. Empty where `error` did not decide the length.
        """
        names = ("evaluations", "log_z", "error")
        return [dict(zip(names, numbers, strict=True)) for numbers in self._report.rounds]

    @property
    def barrier(self) -> float | None:
        """The integral over beta of the standard deviation of the work rate, from the base to the
        density [Syed et al. 2024]; None without rounds.
        """
        found: float | None = self._report.barrier
        return found

    @property
    def samples(self) -> Array | dict[str, Array]:
        """The particles of all replicates [N, ...], as the density takes them; of a density.

        With priors or supports by name, a dict. They have the weights `log_weights`.
        """
        particles = self._particles()
        return flattened(particles.by_name(particles.z))

    @property
    def log_weights(self) -> Array:
        """Log weights of `samples` [N], nats. The log of their mean is `log_z`."""
        weights: Array = self._particles().log_weights.flatten().numpy()
        return weights

    def to_arviz(self, draws: int | None = None) -> Any:
        """ArviZ's InferenceData: `draws` (as many as there are particles) of each replicate.

        Draws are resampled by weight, so that some repeat: `ess` says how many count. A replicate
        is a chain. Needs arviz.
        """
        return to_arviz(self._particles(), draws, int(self.summary["settings"]["seed"]))

    def _particles(self) -> Particles:
        if not self._is_density():
            raise AttributeError("samples and log_weights are of a density")
        kept = self._report.particles
        if kept is None:
            raise UsageError(
                "samples: no particles were kept. Those of the method ais are, up to 256 MiB, "
                "without target_error and mean_error; not those of chunks that `resume` has read"
            )
        z, log_weights = kept
        return Particles(z, log_weights, self._point)

    @property
    def log_likelihood(self) -> Array:
        """Estimates of log p(x) [N], nats."""
        return self.log_normalizer

    def __len__(self) -> int:
        return len(self.indices)

    def flag_words(self, i: int) -> str:
        """Why not to trust estimate i: "ess+tail"; "" for no reason."""
        words: str = extension().flag_words(int(self.flags[i]))
        return words

    def __repr__(self) -> str:
        table: str = self._report.text(100)
        return table

    def _repr_html_(self) -> str:
        table = html.escape(self._report.text(0))
        page = html.escape(self._report.file("report.html"))
        return (
            f"<pre style='line-height: 1.2'>{table}</pre><details><summary>Report, with pictures"
            f'</summary><iframe sandbox srcdoc="{page}" style="width: 100%; height: 40rem; border: 0">'
            "</iframe></details>"
        )

    def to_dict(self) -> dict[str, Any]:
        """What summary.json holds."""
        return dict(self.summary)

    def to_pandas(self) -> Any:
        """A DataFrame with a row for each image, method and repeat: per_image.csv. Needs pandas."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise ImportError("to_pandas needs pandas: pip install pandas") from None
        name = "per_problem.csv" if self._is_density() else "per_image.csv"
        return pandas.read_csv(io.StringIO(self._report.file(name)), keep_default_na=True)

    def _is_density(self) -> bool:
        return bool(self.summary["program"] == "estimate-logz")

    def save(self, folder: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Writes what the program would: summary.json, CSV files, and chunks that it can resume.

        Raises UsageError if results lie there and `overwrite` is False.
        """
        self._report.save(os.fspath(folder), overwrite)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes report.html of the programs: tables, reasons and pictures on one page.

        It is one file without scripts, which refers to no other.
        """
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._report.file("report.html"))


def _log_mean(logs: Array) -> float:
    """log of the mean of exp."""
    highest = float(logs.max())
    if not math.isfinite(highest):
        return highest
    return highest + math.log(float(np.exp(logs - highest).mean()))


def _number(value: Any) -> float:
    """json has no NaN."""
    return math.nan if value is None or isinstance(value, str) else float(value)


@dataclass(repr=False)
class Comparison:
    """Paired differences `after` - `before` of the same images, nats.

    mean           the mean difference
    data_se, mc_se its standard errors: over images, and by the chains alone
    low, high      its 95% interval over all such images, by Student's t
    unpaired_se    what the error would be of two separate sets of images
    bias           to be expected of the mean; NaN where unknown
    share_better   of the images gained; clearly_better and clearly_worse count those that
                   changed by more than two Monte Carlo errors
    flagged        how many images are flagged in either result
    unflagged      (mean, data_se, mc_se) of the others; None where no image is flagged
    difference, std_error  [N], of each image; the error is Monte Carlo's

    Of two densities it is the log ratio of their normalisers. Their replicates share nothing, so
    that the error is unpaired_se.
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
    is_density: bool

    def __repr__(self) -> str:
        if self.is_density:
            return (
                f"log Z, after - before: {self.mean:+.4f} nats; SE {self.unpaired_se:.2g} over "
                f"{len(self.difference)} independent replicates of each density"
            )
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
    """Paired differences of two results on the same images: far tighter than two means.

    Of two densities: the log ratio of their normalisers. Raises UsageError where the images are not
    the same, or one result is of images and the other of a density.
    """
    if not isinstance(before, Result) or not isinstance(after, Result):
        raise UsageError("compare takes two results, of evaluate or log_normalizer")
    if before._is_density() != after._is_density():
        raise UsageError("one result is of images and the other of a density: compare two of a kind")
    if before._is_density() and len(before) != len(after):
        raise UsageError(
            f"the results have {len(before)} and {len(after)} replicates: ask for as many `problems`"
        )
    one, two = (result.summary.get("images", {}).get("sha256") for result in (before, after))
    if one != two or len(before) != len(after):
        raise UsageError("the results are of different images: only the same can be compared in pairs")
    found = extension().compare(
        *(
            (one.log_normalizer.tolist(), one.std_error.tolist(), one.bias_each.tolist(),
             (one.flags != 0).tolist())
            for one in (after, before)
        )
    )  # fmt: skip
    difference, std_error = (np.asarray(found.pop(name)) for name in ("difference", "std_error"))
    return Comparison(
        **found, difference=difference, std_error=std_error, is_density=before._is_density()
    )


@dataclass(frozen=True)
class BayesFactor:
    """log Z1 - log Z2, nats.

    mc_se    its Monte Carlo error: the two results are independent
    low, high  two errors below and above
    flagged  True where one of the results, or half of its replicates, is not to be trusted; `reasons`
             say which and why
    notes    what else would make it wrong: constants that a model's language drops, say
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
        lines = [
            f"log Z1 - log Z2: {self.log_ratio:+.4f} nats; Monte Carlo SE {self.mc_se:.2g}; "
            f"Bayes factor {factor}"
        ]
        lines += [f"Flagged: {reason}." for reason in self.reasons]
        return "\n".join(lines + [f"Note: {note}." for note in self.notes])


def bayes_factor(first: Result, second: Result) -> BayesFactor:
    """The log ratio of two densities' normalisers, of their evidences, say: log_z less log_z.

    Both must be normalised alike: the same data, and every constant of likelihood and prior. Raises
    UsageError where a result is of images.
    """
    for result in (first, second):
        if not isinstance(result, Result) or not result._is_density():
            raise UsageError("bayes_factor takes two results of log_normalizer")
    each = {"the first": first, "the second": second}
    reasons = [f"{name}: {line}" for name, result in each.items() for line in _doubts(result)]
    return BayesFactor(
        first.log_z - second.log_z,
        math.hypot(first.mc_se, second.mc_se),
        bool(reasons),
        reasons,
        [f"{name}: {note}" for name, result in each.items() for note in result.notes],
    )


def _doubts(result: Result) -> list[str]:
    """Reasons of the whole, and of its replicates where half of them are flagged."""
    flagged = [i for i in range(len(result)) if result.flags[i]]
    if 2 * len(flagged) < len(result):
        return result.reasons
    words = sorted({word for i in flagged for word in result.flag_words(i).split("+")})
    return [*result.reasons, f"{len(flagged)} of {len(result)} replicates: {', '.join(words)}"]
