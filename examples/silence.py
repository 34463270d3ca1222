"""Eight ways in which an estimate of log Z is wrong without a word, each as a picture.

python3 examples/silence.py [--out docs/results/silence] [--only modes ...]

Densities whose normaliser is known are estimated, each result is printed, and KIND.svg drawn. All
eight take four minutes on one core, and runs.csv then keeps their figures. Needs matplotlib.
"""

import argparse
import csv
import math
from pathlib import Path

import matplotlib
import numpy as np
import torch
from matplotlib.figure import Figure
from torch.nn.functional import logsigmoid

import crais

GREEN, BLUE, ORANGE, RED, GREY = "#1b7837", "#2166ac", "#e08214", "#b2182b", "#666666"
LOG_Z_OF_WELL = 10.29347970708  # by quadrature
COLUMNS = ["kind", "run", "exact", "mean", "mc_se", "bias", "ess", "flagged_replicates", "said"]
STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "silence", "figure.titlesize": 10, "axes.titlesize": 9,
    "xtick.labelsize": 9, "ytick.labelsize": 9, "legend.frameon": False, "legend.fontsize": 8,
    "errorbar.capsize": 3, "lines.markersize": 4,
}  # fmt: skip


class Runs:
    """Runs crais, prints what a user is told, and keeps it as rows of a table."""

    def __init__(self):
        self.kind, self.rows = "", []

    def estimate(self, run, density, exact=None, **options):
        result = crais.log_normalizer(density, progress=False, seed=0, **options)
        figures = {name: f"{getattr(result, name):.4f}" for name in COLUMNS[3:7]}
        known = {} if exact is None else {"exact": f"{exact:.4f}"}
        flagged = int((result.flags != 0).sum())
        self._keep(run=run, **known, **figures, flagged_replicates=flagged, said=said(result))
        return result

    def told(self, run, density, dim):
        """What crais says of what is no density: it is refused, or the whole result has a flag."""
        try:
            return said(self.estimate(run, density, dim=dim))
        except (crais.UsageError, crais.DataError) as error:
            self._keep(run=run, said=f"refused: {error}")
            return str(error)

    def _keep(self, **row):
        self.rows.append({"kind": self.kind, **row})
        print(*(f"{name}={text}" for name, text in self.rows[-1].items()), flush=True)


def said(result):
    """What crais says of the whole result, in the words of summary.json."""
    reasons = [reason["reason"] for reason in result.methods[0]["reasons"]]
    return f"flagged: {', '.join(reasons)}" if reasons else "no flag"


def value(result):
    """The error to two digits."""
    digits = max(0, 1 - math.floor(math.log10(max(result.mc_se, 1e-4))))
    return f"{result.mean:.{digits}f} ± {result.mc_se:.{digits}f}".replace("-", "\N{MINUS SIGN}")


def figure(finding, panels=1, **options):
    """A picture and its axes, under a sentence that says what was found."""
    made = Figure(figsize=(4.8, 3.3), layout="constrained")
    made.suptitle(finding)
    return made, made.subplots(1, panels, **options)


def verdict(axes, name, result):
    axes.set_title(f"{name}\n{value(result)}\n{said(result)}")


def shade(axes, density, x, y):
    """The log density of the plane in greys, one for each nat, down to 8 nats below its mode."""
    grid = np.meshgrid(np.linspace(*x, 150), np.linspace(*y, 150))
    log_density = density(torch.tensor(np.stack(grid, -1).reshape(-1, 2))).reshape(150, 150)
    below = (log_density - log_density.max()).ceil().clamp_min(-8)
    axes.imshow(below, cmap="Greys", vmax=4, origin="lower", extent=(*x, *y), aspect="auto",
                interpolation="nearest")  # fmt: skip


def weights_of(result):
    w = np.exp(result.log_weights - result.log_weights.max())
    return w / w.sum()


# Densities: z [B, D] -> [B], in float64; log Z is 0 unless another is said.


def normal(x, sd=1.0):
    return -0.5 * (x / sd) ** 2 - torch.as_tensor(sd).log() - 0.5 * math.log(2 * math.pi)


def wells(z):
    """Pairs of a double well and a normal: 2^(D/2) modes; log Z is LOG_Z_OF_WELL a pair."""
    x, y = z[:, 0::2], z[:, 1::2]
    return (0.5 * x + 6 * x**2 - x**4 - 0.5 * y**2).sum(1)


def banana(z):
    """Rosenbrock's."""
    return normal(z[:, 0] - 1) + normal(z[:, 1] - z[:, 0] ** 2, 0.1)


def funnel(z):
    """v ~ N(0, 3^2), the others N(0, e^v)."""
    v = z[:, :1]
    return normal(v[:, 0], 3.0) + (normal(z[:, 1:] * (-v / 2).exp()) - v / 2).sum(1)


def two_normals(z):
    return torch.logaddexp(normal(z) + math.log(0.7), normal(z - 6) + math.log(0.3))[:, 0]


def student(degrees):
    t = torch.distributions.StudentT(torch.tensor(degrees, dtype=torch.float64))
    return lambda z: t.log_prob(z).sum(1)


def brownian():
    """A walk of 30 steps, ten unseen, its scales unknown; and log Z: given scales all is normal."""
    rng = torch.Generator().manual_seed(3)
    walk = (0.1 * torch.randn(30, generator=rng, dtype=torch.float64)).cumsum(0)
    seen = torch.cat([torch.arange(10), torch.arange(20, 30)])
    y = walk[seen] + 0.15 * torch.randn(20, generator=rng, dtype=torch.float64)

    def density(z):
        log_step, log_error, x = z[:, :1], z[:, 1:2], z[:, 2:]
        steps = x.diff(dim=1, prepend=torch.zeros_like(log_step)) * (-log_step).exp()
        errors = (y - x[:, seen]) * (-log_error).exp()
        prior = (normal(log_step, 2.0) + normal(log_error, 2.0)).sum(1)
        return prior + (normal(steps) - log_step).sum(1) + (normal(errors) - log_error).sum(1)

    scales = torch.linspace(-12, 8, 401, dtype=torch.float64)
    a, b = torch.meshgrid(scales, scales, indexing="ij")
    values, vectors = torch.linalg.eigh(torch.minimum(seen[:, None], seen).double() + 1)
    sd = ((2 * a).exp()[..., None] * values + (2 * b).exp()[..., None]).sqrt()
    joint = normal(y @ vectors, sd).sum(-1) + normal(a, 2.0) + normal(b, 2.0)
    return density, float(joint.flatten().logsumexp(0)) + 2 * math.log(20 / 400)


# The kinds: each draws the picture of its name.


def modes(runs):
    finding = (
        f"Chains from one of two modes agree, and are wrong:\nlog Z is {LOG_Z_OF_WELL:.4f} nats"
    )
    found, panels = figure(finding, 2, sharey=True)
    for axes, base, style in zip(panels, ("laplace", "modes"), (("x", RED), (".", GREEN))):
        result = runs.estimate(f"base {base}", wells, LOG_Z_OF_WELL, dim=2, base=base)
        shade(axes, wells, (-2.6, 2.6), (-3.5, 3.5))
        axes.plot(*result.samples[:: len(result.samples) // 40].T, style[0], color=style[1])
        axes.set_xlabel("z1")
        verdict(axes, f"base {base}, ESS {result.ess:.2f}", result)
    panels[0].set_ylabel("z2")
    return found


def curved(runs):
    found, (left, right) = figure("Chains miss the ends of a ridge, and the neck of a funnel", 2)
    result = runs.estimate("banana, base laplace", banana, 0.0, dim=2, base="laplace")
    shade(left, banana, (-2.5, 4.0), (-2.0, 13.0))
    kept = np.random.default_rng(0).choice(len(result.log_weights), 80, p=weights_of(result))
    left.plot(*result.samples[kept].T, "x", color=RED)
    left.set(xlabel="z1", ylabel="z2")
    verdict(left, "banana (log Z = 0), base laplace", result)
    result = runs.estimate("funnel, defaults", funnel, 0.0, dim=10)
    edges, v = np.arange(-10, 11), torch.linspace(-10, 10, 81, dtype=torch.float64)
    shares = np.histogram(result.samples[:, 0], edges, weights=weights_of(result))[0]
    right.stairs(shares, edges, color=ORANGE, fill=True, alpha=0.7, label="particles")
    right.plot(v, normal(v, 3.0).exp(), color="black", lw=1.2, label="exact")
    right.set(xlabel="log variance v", ylabel="density of v", ylim=(0, 0.26))
    verdict(right, "funnel (log Z = 0), defaults", result)
    right.legend()
    return found


def replicates(runs):
    exact = 16 * LOG_Z_OF_WELL
    result = runs.estimate("base best", wells, exact, dim=32, base="best", witness="none")
    runs.estimate("base laplace", wells, exact, dim=32, base="laplace", witness="none")
    values, errors, number = result.log_normalizer, result.std_error, np.arange(1, 11)
    chi2 = float((((values - values.mean()) / errors) ** 2).sum()) / 9
    found, axes = figure("65,536 modes: replicates are sure of themselves, and differ")
    label = f"a replicate ± 5 of its own errors (median {np.median(errors):.2f} nats)"
    axes.errorbar(number, values, 5 * errors, fmt="D", color=ORANGE, label=label)
    axes.axhline(exact, color="black", lw=1.2, label=f"exact {exact:.2f}")
    axes.axhline(result.mean, color=GREY, lw=1, ls="--", label=f"mean {value(result)}")
    axes.set(xlabel="replicate", ylabel="log Z, nats", xticks=number, ylim=(133, exact + 2))
    axes.set_title(f"{said(result)} (chi-square / 9 = {chi2:,.0f})")
    axes.legend(loc="lower left")
    return found


def refuted(runs):
    density, exact = brownian()
    found, axes = figure(
        "Brownian motion: each estimate is a lower bound on\n"
        "average, and a higher one refutes the others"
    )
    labels = ["prior", "laplace", "pilot", "auto,\n--budget 500000"]
    for place, base in enumerate(("prior", "laplace", "pilot", "auto")):
        length = {"budget": 500000} if base == "auto" else {"steps": 1024}
        result = runs.estimate(f"base {base}", density, exact, dim=32, base=base, **length)
        style = {"fmt": "x", "color": RED} if result.flagged else {"fmt": "o", "color": GREEN}
        axes.errorbar(place, result.mean, 5 * result.mc_se, **style)
        words = said(result).replace(": ", ":\n").replace(", ", ",\n")
        axes.annotate(f"{value(result)}\n{words}", (place, result.mean), (8, -5), va="top",
                      textcoords="offset points", fontsize=8)  # fmt: skip
    axes.axhline(exact, color="black", lw=1.2)
    axes.text(-0.4, exact + 0.3, f"exact \N{MINUS SIGN}{-exact:.3f}", fontsize=8)
    axes.set(xticks=range(4), xticklabels=labels, xlim=(-0.5, 4.5), ylim=(-13, -0.5))
    axes.set(xlabel="base", ylabel="log Z ± 5 errors, nats")
    return found


def undefined(runs):
    def half_normal(z):
        return torch.where(z > 0, normal(z), torch.full_like(z, -math.inf))[:, 0]

    def holed(z, hole=math.nan):
        return torch.where(z[:, 0] < 4, two_normals(z), torch.full_like(z[:, 0], hole))

    runs.told("NaN above 4, defaults", holed, dim=1)
    runs.told("+inf above 4, defaults", lambda z: holed(z, math.inf), dim=1)
    finding = "−inf is a density of zero; NaN is counted, and flagged"
    found, (left, right) = figure(finding, 2, sharey=True)
    z = torch.linspace(-3.5, 9, 501, dtype=torch.float64)[:, None]
    result = runs.estimate("half normal, defaults", half_normal, math.log(0.5), dim=1)
    left.plot(z, half_normal(z).exp(), color=GREEN)
    left.axvspan(-3.5, 0, color=BLUE, alpha=0.15, lw=0)
    left.text(-1.75, 0.2, "−inf", ha="center")
    left.set(xlabel="z", ylabel="density", xlim=(-3.5, 3.5), ylim=(0, 0.45))
    verdict(left, "log Z = −0.6931, defaults", result)
    options = {"dim": 1, "base": "prior", "witness": "none"}
    result = runs.estimate("NaN above 4, base prior", holed, 0.0, **options)
    right.plot(z, two_normals(z).exp(), color=GREY, ls=":")
    right.plot(z, holed(z).exp(), color=ORANGE)
    right.axvspan(4, 9, color=ORANGE, alpha=0.2, lw=0)
    right.text(6.5, 0.2, "NaN", ha="center")
    right.set(xlabel="z", xlim=(-3.5, 9), xticks=[0, 4, 8])
    verdict(right, "log Z = 0, base prior", result)
    return found


def functions(runs):
    torch.manual_seed(0)
    dropout, t = torch.nn.Dropout(0.2), student(5.0)
    point, calls = torch.linspace(0, 4, 10, dtype=torch.float64)[None], range(1, 41)

    def density(z):
        return t(dropout(z))

    found, axes = figure("With dropout on a density is no function of z: refused")
    axes.set_title(f"“{runs.told('dropout on', density, dim=10)}”")
    on = [float(density(point)) for _ in calls]
    dropout.eval()
    options = {"dim": 10, "base": "prior", "witness": "none"}
    result = runs.estimate("dropout off, base prior", density, 0.0, **options)
    label = f"dropout off: log Z {value(result)}, exact 0, {said(result)}"
    axes.plot(calls, on, "x", color=RED, label="dropout on")
    axes.plot(calls, [float(density(point)) for _ in calls], ".", color=GREEN, label=label)
    axes.set(xlabel="call", ylabel="log density at one point, nats")
    axes.set_ylim(min(on) - 1, max(on) + 7)
    axes.legend(loc="upper left")
    return found


def alarms(runs):
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(40, 3, generator=rng, dtype=torch.float64)
    x *= 1 - 2.0 * (torch.rand(40, generator=rng) > torch.sigmoid(x[:, 0] - x[:, 1]))[:, None]
    scales, counts = torch.logspace(-3, 0, 8).double(), torch.tensor([3, 5, 2, 4, 6, 1, 7, 3])
    cases = {
        "normal": (lambda z: normal(z, scales).sum(1), 8),
        "beta-binomial": (lambda z: (52 * logsigmoid(z) + 55 * logsigmoid(-z))[:, 0], 1),
        "logistic\nregression": (lambda z: normal(z).sum(1) + logsigmoid(z @ x.T).sum(1), 3),
        "Poisson\ncounts": (lambda z: (normal(z) + counts * z - z.exp()).sum(1), 8),
        "Student-t,\n2 degrees": (student(2.0), 10),
    }
    options = {"base": "laplace", "chains": 512, "steps": 16, "witness": "none"}
    found, axes = figure("Easy densities raise no alarm; heavy tails do")
    for row, (name, (density, dim)) in enumerate(cases.items()):
        result = runs.estimate(name.replace("\n", " "), density, dim=dim, **options)
        flagged, k = result.flags != 0, np.maximum(result.pareto_k, -0.3)
        for chosen, marker, colour in ((~flagged, "o", GREEN), (flagged, "D", ORANGE)):
            axes.plot(k[chosen], np.full(chosen.sum(), row), marker, color=colour, alpha=0.7)
        axes.text(1.15, row, f"{flagged.sum()} of {len(k)} flagged", va="center", fontsize=8)
        if np.isinf(result.pareto_k).all():
            spread = np.abs(result.log_weights - result.log_weights.mean()).max()
            axes.text(-0.2, row, f"no k: weights equal to {spread:.0e}", va="center", fontsize=8)
    axes.plot([0.7, 0.7], [0.4, len(cases) - 0.6], color="black", lw=1)
    axes.set(xlabel="Pareto k of a replicate's weights, limit 0.7", xlim=(-0.4, 1.8))
    axes.set(yticks=range(len(cases)), yticklabels=cases, ylim=(len(cases) - 0.6, -0.4))
    return found


def budgets(runs):
    density, lengths, bars = student(3.0), [16, 32, 64, 128, 256, 512], []
    given = {"dim": 10, "base": "laplace", "problems": 300, "witness": "none"}
    for steps in lengths:
        run, equal_cost = f"{steps} temperatures", {"steps": steps, "chains": 4096 // steps}
        bars.append(runs.estimate(run, density, 0.0, **equal_cost, **given))
    bought = runs.estimate("budget 5,000", density, 0.0, budget=5000, **given)
    found, axes = figure("Short chains hide their bias: at equal cost long ones see more")
    axes.axhline(0, color="black", lw=1.2)
    label = "mean of 300 estimates ± 2 errors; exact 0"
    axes.errorbar(lengths, [r.mean for r in bars], [2 * r.mc_se for r in bars], fmt="o-",
                  color=BLUE, label=label)  # fmt: skip
    axes.plot(lengths, [r.bias for r in bars], "s--", color=ORANGE, label="bias that results state")
    axes.errorbar(bought.methods[0]["transitions"], bought.mean, 2 * bought.mc_se, fmt="*", ms=9,
                  color=GREEN, label="what --budget 5000 buys")  # fmt: skip
    for steps, r in zip(lengths, bars):
        axes.annotate(f"ESS {r.ess:.2f}", (steps, r.mean - 2 * r.mc_se), (0, -11), ha="center",
                      textcoords="offset points", fontsize=8)  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.set(xticks=lengths, xticklabels=lengths, xlim=(11.5, 800), ylim=(-0.16, 0.03))
    axes.set(xlabel="temperatures (4,096 evaluations an estimate)", ylabel="log Z, nats")
    axes.legend(loc="lower right")
    return found


KINDS = [modes, curved, replicates, refuted, undefined, functions, alarms, budgets]

flags = argparse.ArgumentParser()
flags.add_argument("--out", type=Path, default=Path("docs/results/silence"))
flags.add_argument("--only", nargs="+", choices=[kind.__name__ for kind in KINDS])
arguments = flags.parse_args()

matplotlib.rcParams.update(STYLE)
runs = Runs()
for kind in KINDS:
    runs.kind = kind.__name__
    if arguments.only is None or runs.kind in arguments.only:
        kind(runs).savefig(arguments.out / f"{runs.kind}.svg", dpi=100, metadata={"Date": None})
if arguments.only is None:
    with open(arguments.out / "runs.csv", "w", newline="") as table:
        writer = csv.DictWriter(table, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(runs.rows)
