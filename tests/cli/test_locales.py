"""A locale whose numbers have a comma: what is read and written is the same."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .programs import Program, read_json, same

COMMA = "de_DE.UTF-8"
FLAGS = "--step-size 0.25 --chains 4 --chunk 8 --quiet".split()


@pytest.fixture(scope="module")
def locale(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a German user. The locale is made here where the machine has none."""
    german = {"LC_ALL": COMMA, "LANG": COMMA, "LANGUAGE": "de"}
    if has_comma(german):
        return german
    if not shutil.which("localedef"):
        pytest.skip(f"there is neither {COMMA} nor localedef")
    folder = tmp_path_factory.mktemp("locales")
    made = ["localedef", "-i", "de_DE", "-f", "UTF-8", "--no-archive", folder / COMMA]
    subprocess.run(made, capture_output=True)
    german["LOCPATH"] = str(folder)
    if not has_comma(german):
        pytest.skip(f"localedef could not make {COMMA}")
    return german


def has_comma(env: dict[str, str]) -> bool:
    """True if processes in this environment have the locale."""
    asks = (
        "import locale as l; l.setlocale(l.LC_ALL, ''); print(l.localeconv()['decimal_point'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", asks], env={**os.environ, **env}, capture_output=True, text=True
    )
    return done.stdout == ",\n"


def test_evaluations(eval_loglik: Program, vae: Path, locale: dict[str, str]) -> None:
    Path("betas.csv").write_text("step,beta\n0,0\n1,0.25\n2,1\n")
    said = []
    for folder, env in {"plain": {"LC_ALL": "C"}, "comma": locale}.items():
        for schedule in ("sigmoidal:0.3", "file:betas.csv"):
            out = ["--schedule", schedule, "--out", f"{folder}/{schedule[:4]}"]
            done = eval_loglik.succeed(vae, "--simulate=24", *FLAGS, *out, env=env)
            said.append(done.stdout.replace(folder, "OUT"))
    assert said[:2] == said[2:]
    for name in ("sigm", "file"):
        for file in ("per_image.csv", "schedule.csv", "run.json", "plan.json"):
            same(f"plain/{name}/{file}", f"comma/{name}/{file}")
        plain, comma = (untimed(f"{of}/{name}/summary.json") for of in ("plain", "comma"))
        assert plain == comma


def untimed(summary: str) -> list[dict[str, object]]:
    """Results, without how long they took."""
    rows = read_json(summary)["results"]
    return [{key: value for key, value in row.items() if "second" not in key} for row in rows]


def test_other_programs(
    estimate_logz: Program, train_vae: Program, locale: dict[str, str]
) -> None:
    train = "--data synthetic:60 --hidden 8 --latent 4 --epochs 1 --lr 0.002 --quiet".split()
    density = "normal:2,sd=0.5 --base prior --witness none --steps 4 --quiet".split()
    for folder, env in {"plain": {"LC_ALL": "C"}, "comma": locale}.items():
        estimate_logz.succeed(*density, "--out", f"{folder}/z", env=env)
        train_vae.succeed(*train, "--out", f"{folder}/vae", env=env)
    for file in ("z/per_problem.csv", "z/run.json", "vae/vae.safetensors"):
        same(f"plain/{file}", f"comma/{file}")


def test_a_comma_is_no_number_anywhere(
    eval_loglik: Program, vae: Path, locale: dict[str, str]
) -> None:
    args = [vae, *"--simulate 3 --step-size 0,5".split()]
    eval_loglik.expect(64, "--step-size", "0,5", "not a number", args=args, env=locale)
