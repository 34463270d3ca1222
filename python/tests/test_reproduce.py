"""reproduce as a user meets it: names, files, nothing computed twice, bad input; and its measures."""

import itertools
import json
import math
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import crais
from crais.errors import UsageError
from crais.reproduce.__main__ import main
from crais.reproduce.cells import Subject, Variant, integral
from crais.reproduce.experiment import FOLDER, NAMES, Experiment
from crais.reproduce.tables import choose, is_fair, match_transitions, measures_of

pytestmark = pytest.mark.usefixtures("compiled")
WHOLE = ("samplers", "schedules", "starts", "trainings", "resamplings", "others")  # lists at any size
SMALL = {"chains": 4, "many": 4, "images": 2, "points": 32, "particles": 5, "dim": 8, "steps": 4}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder without images, where a test runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CRAIS_DATA", raising=False)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished run of some seconds, and its arguments but for --out."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "figure-2d.json").write_text(tiny((FOLDER / "figure-2d.json").read_text()))
    small = [str(folder / "figure-2d.json"), *"--seeds 2 --quiet".split()]
    main([*small, "--out", str(folder / "first")])
    return folder / "first", small


def tiny(text):
    """An experiment on few chains, seeds and steps, and on made-up images and cases."""
    for flag, number in {"chains": 4, "pilot-chains": 8, "steps": 3, "interpolate": 3}.items():
        text = re.sub(rf"--{flag} [0-9]+", f"--{flag} {number}", text)
    for long, short in {
        "iterations=[0-9]+": "iterations=2",
        '"network": "[0-9]+': '"network": "2',
        "(elbo|iwae):[0-9]{3,}": r"\1:9",
        "--budget [0-9]+": "--budget 600",
        ":(128|512)": ":8",  # dimensions
        "logistic-regression:(pima|sonar|[{]data[}])": "logistic-regression:cases.csv",
        # Rules that need few transitions.
        r'(constant-rate:|"rate": "?)[0-9.]+': r"\g<1>300",
        '"0.03125", "1"': '"300", "400"',
        r"[{]\((kl|length)\[at\] / share": r"{(\1[at] / 2",
        "(cess:|ess:)0[.][0-9]+": r"\g<1>0.3",
        "--max-step 0[.][0-9]+": "--max-step 0.5",
        '"(hard|log-concave).safetensors"': rf'"{FOLDER}/\1.safetensors"',
    }.items():
        text = re.sub(long, short, text)

    def small(value, to):
        """Each number in it replaced."""
        if isinstance(value, dict):
            return {key: small(part, to) for key, part in value.items()}
        if isinstance(value, list):
            return [small(part, to) for part in value]
        return value if isinstance(value, str) else to

    shrunk = lambda values: values | {name: small(values[name], to) for name, to in SMALL.items() if name in values}
    content = json.loads(text, object_hook=shrunk)
    for name, entries in content["lists"].items():
        if isinstance(entries, list):
            content["lists"][name] = entries[:1] + entries[-1:]
        elif name not in WHOLE and all(isinstance(column, list) for column in entries.values()):
            rows = list(itertools.zip_longest(*entries.values()))
            content["lists"][name] = dict(zip(entries, map(list, zip(rows[0], rows[-1]))))
    return json.dumps(content)


def refused(capsys, code, *arguments):
    """What one line says."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main([str(each) for each in arguments])
    said = capsys.readouterr().err
    assert ended.value.code == code and said.startswith("reproduce: ") and said.count("\n") == 1, said
    return said


def test_lists_the_experiments(capsys):
    main(["list"])
    assert [line.split(" ")[0] for line in capsys.readouterr().out.splitlines()] == NAMES
    assert len(NAMES) >= 14


@pytest.mark.parametrize("name", NAMES)
def test_runs_at_a_tiny_size(name):
    Path("cases.csv").write_text("1,3.5,a\n2,0.5,b\n4,1.5,a\n3,-1,b\n")
    Path("tiny.json").write_text(tiny((FOLDER / f"{name}.json").read_text()))
    seeds = [] if name == "calibration" else ["--seeds", "2"]
    if "checkpoint" in Experiment("tiny.json").uses():
        seeds += ["--checkpoint", str(FOLDER / "hard.safetensors")]
    main(["tiny.json", *seeds, "--quiet", "--out", "out"])
    for table in Experiment(name).content["tables"]:
        if "{" not in table["stem"]:
            assert len(Path(f"out/tiny/{table['stem']}.csv").read_text().splitlines()) > 1


@pytest.mark.parametrize(
    ("code", "arguments", "words"),
    [
        (64, "table-9", "unknown experiment 'table-9'; choose from accuracy, .*figure-2d.*table-smc"),
        (64, "figure-2d table-9", "unknown experiment 'table-9'"),
        (64, "figure-2d --quick --full", "--full: not allowed with argument --quick"),
        (64, "figure-2d --seeds 1", "--seeds at least 2"),
        (64, "figure-2d --flag", "unknown flag --flag"),
        (64, "figure-2d --checkpoint x", "--checkpoint does nothing for figure-2d"),
        (64, "figure-2d calibration --data-dir .", "--data-dir does nothing for figure-2d, calibration"),
        (64, "calibration --seeds 3", "--seeds does nothing for calibration"),
        (64, "list --seeds 3", "--seeds does nothing for list"),
        (64, "table-highdim:64", "'table-highdim:64': choose from 128, 512"),
        (64, "figure-2d:8", "'figure-2d:8': it has no parameters"),
        (64, "figure-2d --out caf\udce9", "--out is not UTF-8"),
        (66, "no.json", "no.json: No such file"),
        (73, "figure-2d --quiet --out file/checked", "Not a directory"),
    ],
)
def test_refuses(capsys, code, arguments, words):
    Path("file").touch()
    assert re.search(words, refused(capsys, code, *arguments.split()))
    assert not Path("checked").exists(), "the fault was found only after the work had begun"


def test_data_that_are_missing(capsys):
    assert "pima" in refused(capsys, 66, "figure-logreg", "--quiet", "--data-dir", ".")


def test_a_second_run_computes_nothing_but_what_is_lost(capsys, whole):
    first, small = Path(shutil.copytree(whole[0], "first")), whole[1]
    cells = sorted((first / "cells").iterdir())
    made = {file: file.stat().st_mtime_ns for file in cells}
    cells[0].unlink()
    main([*small, "--out", "first", "--threads", "1"])
    for file in whole[0].rglob("*.*"):
        assert file.read_bytes() == (first / file.relative_to(whole[0])).read_bytes()
    assert [file for file in cells if made[file] != file.stat().st_mtime_ns] == cells[:1]
    assert (first / "figure-2d/plans.csv").stat().st_size > 0


NO_RESULTS = "{}", "7", '"failed"', '{"failed": 7}', '{"ess": "7"}', '{"ess": 7}', '{"ess": [[7]]}', '{"ess": [null]}'


@pytest.mark.parametrize(
    ("code", "pattern", "damage", "word"),
    [
        (65, ".*", "[]", "is damaged; delete it"),
        *((65, '"result":.*', f'"result": {result}}}', "is damaged; delete it") for result in NO_RESULTS),
        (65, '"key": "', '"key": "other', "is damaged; delete it"),
        (64, '"sources": "', '"sources": "other', "another build has computed this"),
    ],
)
def test_a_wrong_cell_is_named(capsys, whole, code, pattern, damage, word):
    first, small = Path(shutil.copytree(whole[0], "first")), whole[1]
    cell = min((first / "cells").iterdir())
    cell.write_text(re.sub(pattern, lambda _: damage, cell.read_text(), count=1))
    said = refused(capsys, code, *small, "--out", "first")
    assert word in said and cell.name in said
    if code == 64:
        main([*small, "--out", "first", "--accept-other-version"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_loses_nothing_that_is_finished(number):
    command = [sys.executable, "-m", "crais.reproduce", "figure-2d", "--quiet", "--out", "out"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        while not list(Path().glob("out/cells/*.json")) and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(number)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 75 and "the same command goes on" in said, said
    assert {file.suffix for file in Path("out/cells").iterdir()} == {".json"}


def experiment(**changes):
    """The arguments of a tiny experiment, changed at JSON pointers."""
    content = {
        "summary": "a tiny one",
        "about": "{seeds} seeds.",
        "set": {"seeds": {"full": 9, "quick": 3}, "problems": "{seeds}", "kl": 9.5, "nested": "{seeds}",
                "paper": {"linear": [1.5, 0.25]}},
        "lists": {
            "targets": [{"target": "u10"}, {"target": "u11", "if": "full"}],
            "ways": {
                "way": ["linear", "none", "best"],
                "flags": ["--schedule linear --steps {steps} --chains 4 --step-size 0.5",
                          "--schedule constant-rate:1e-6 --max-steps 5 --chains 4 --per-problem",
                          "--steps {setting} --chains 4 --step-size 0.5"],
                "settings": [None, None, ["2", "6"]],
                "choosing": [None, None, 1],
            },
        },
        "tables": [{
            "stem": "errors", "title": "Errors", "axes": ["targets", "ways"], "set": {"steps": 6},
            "plans": "betas",
            "columns": ["target = {target}", "way = {way}", "M = transitions:0 or reason",
                        "cost = evaluations / 4 - 1:0", "kl = {(kl / 4)|significant}|{nested}",
                        "paper = paper[way][0] +- paper[way][1]:1", "chosen = {chosen}"],
        }],
    }  # fmt: skip
    for pointer, value in changes.items():
        *path, last = [int(key) if key.isdigit() else key for key in pointer.split("/")]
        place = content
        for key in path:
            place = place[key]
        if value is None:
            del place[last]
        else:
            place[last] = value
    Path("tiny.json").write_text(json.dumps(content))
    return ["tiny.json", "--quiet", "--out", "out"]


def test_makes_tables_from_data():
    main(experiment())
    lines = Path("out/tiny/errors.csv").read_text().splitlines()
    assert lines[:3] == [
        "target,way,M,cost,kl,paper,chosen",
        "u10,linear,6,6,2.38|3,1.5 +- 0.2,-",
        "u10,none,the schedule has reached beta = 3.83782e-06 after 5 steps,-,2.38|3,-,-",
    ]
    assert lines[3].startswith("u10,best,")
    assert len(list(Path("out/cells").iterdir())) == 3  # linear is the default
    plans = Path("out/tiny/plans.csv").read_text()
    assert plans.startswith("target,way,kl,chosen,0.00,0.02,")
    assert "u10,linear,2.38|3,-,0,0.0200000," in plans
    page = Path("out/tiny/tables.md").read_text()
    assert page.startswith("# a tiny one\n\n3 seeds.\n\n## Errors\n\n| target | way |")
    assert "| u10 | linear | 6 | 6 | 2.38\\|3 | 1.5 +- 0.2 | - |\n" in page
    assert page.endswith("2 rows in [plans.csv](plans.csv)\n")
    main([*experiment(), "--seeds", "2"])
    assert len(list(Path("out/cells").iterdir())) == 6


@pytest.mark.parametrize(
    ("pointer", "value", "words"),
    [
        ("tables/0/columns/0", "a = {targt}", "'targt' is undefined"),
        ("tables/0/columns/0", "a = bais:2", "KeyError: 'bais'"),
        ("tables/0/columns/0", "a = print(1):2", "KeyError: 'print'"),
        ("tables/0/columns/0", "a = 1 +:2", "TemplateSyntaxError: "),
        ("tables/0/columns/0", "bias:2", "ValueError: not enough values"),
        ("tables/0/axes", ["targets", "ways", "goals"], "KeyError: 'goals'"),
        ("set/nested", "{nested}", "RecursionError: "),
        ("set/problems", "many", "ValueError: .*'many'"),
    ],
)
def test_wrong_words_are_told_with_their_file(capsys, pointer, value, words):
    said = refused(capsys, 65, *experiment(**{pointer: value}))
    assert re.search("reproduce: tiny.json: .*" + words, said) and not Path("out/cells").exists(), said


def test_cells_are_told_apart_by_what_a_file_holds():
    arguments = experiment(**{"lists/targets": [{"target": "logistic-regression:cases.csv"}]})
    cases = "1,3.5,a\n2,0.5,b\n4,1.5,a\n3,-1,b\n"
    for text in (cases, cases.replace("3.5", "2.5")):
        Path("cases.csv").write_text(text)
        main(arguments)
    assert len(list(Path("out/cells").iterdir())) == 6


def test_an_integral_is_what_importance_sampling_finds():
    file = FOLDER / "log-concave.safetensors"
    found = crais.evaluate(str(file), simulate=8, method="iwae:100000", base="prior", progress=False)
    exact = torch.tensor(integral(file, found.images.flatten(1).double(), 256)["log_p"])
    assert found.std_error.max() < 0.1
    assert ((torch.tensor(found.log_likelihood) - exact) / torch.tensor(found.std_error)).abs().max() < 5


def test_the_first_seeds_choose_and_the_others_report():
    values = [[-3, -3, -1, -1], [-1, -1, -3, -3], [-2, -2, -0.5, 0.25], [math.nan]]
    assert choose([torch.tensor(each).double() for each in values], 2, 0) == (1, 2)
    assert choose([torch.tensor([math.nan])], 1, 0) == (-1, -1)


def given(*seeds):
    """Results of seeds, each [N]."""
    cell = {"std_error": [0.5] * len(seeds[0]), "flags": [0] * len(seeds[0])}
    return Variant([{"log_normalizer": list(each), **cell} for each in seeds])


def measured(result, truth=None, first=None, has_images=False, choosing=0):
    return measures_of(truth, has_images, choosing, False, result, first)


def test_measures_of_repetitions():
    truth = torch.tensor(2.0).double()
    m = measured(given([1.0, 2.5, 4.0]), truth, first=given([2, 2, 2]))
    known = {"bias": 0.5, "bias_se": math.sqrt(2.25 / 3), "abs": 3.5 / 3, "rmse": math.sqrt(5.25 / 3),
             "above_first": 3.5 / 3, "within_1": 1 / 3, "wrong": 2 / 3, "caught": 0}  # fmt: skip
    assert {name: m[name] for name in known} == pytest.approx(known, abs=1e-14)
    assert measured(given([1.0, 2.5, 4.0]), truth, choosing=2)["bias"] == 2


def test_measures_of_images_are_of_their_means():
    m = measured(given([1, 3], [2, 6]), torch.ones(2).double(), has_images=True)
    assert [m[name] for name in ("mean", "bias", "bias_se", "image_most", "silent")] == [3, 2, 1, 5, 2]


def test_measures_of_falling_divergences():
    result = Variant([{"divergence": [4.0, 2.0, 1.0, 0.0]}, {"divergence": [3.0, 2.0, 1.0, 0.0]}])
    m = measured(result)
    assert [m[name] for name in ("start", "first_start")] == [3.5, 4]
    assert [m["bend"], m["fall"]] == pytest.approx([1 / 12, -1.15])


@pytest.mark.parametrize(
    ("flags", "transitions", "steps"),
    [
        *(
            ("--schedule constant-rate:@", lambda delta, kl=kl: round(8 + 0.8 * kl / delta), steps)
            for kl in (0.3, 9.0, 1600.0, 12441.0)
            for steps in (16, 64, 512)
        ),
        *(
            ("--schedule cess:@", lambda ratio, far=far: math.ceil(far / math.sqrt(1 / ratio - 1)), steps)
            for far in (3.0, 40.0)
            for steps in (32, 128)
        ),
        ("--schedule constant-length:@", lambda delta: math.inf if delta < 4 else round(500 / delta), 64),
        ("--max-step @", lambda step: math.ceil(10 + 1 / step), 64),
    ],
)
def test_a_setting_of_each_length_is_found(flags, transitions, steps):
    count = lambda settings: [transitions(float(setting)) for setting in settings]
    setting, found, tried = match_transitions(flags, steps, count)
    assert is_fair(found, steps) and found == transitions(float(setting)) and tried <= 24


def test_the_nearest_setting_is_taken_where_none_will_do():
    found = lambda flags, of: match_transitions(flags, 64, lambda each: [of(float(one)) for one in each])
    assert found("--schedule ess:@", lambda _: 40)[1] == 40
    assert found("--schedule constant-rate:@", lambda delta: 30 if delta > 1 else 200)[1] == 30
    assert found("--max-step @", lambda _: math.inf)[:2] == ("1.000", math.inf)
    assert found("--schedule constant-rate:@", lambda _: math.nan)[:2] == ("22026", 0)


def test_pilots_are_kept_and_chains_dropped():
    subject = Subject("u11", {"problems": 1}, [], False)
    for flags, pilots in ("--chains 4096", 256), ("--kernel hmc", 16), ("--chains 64 --pilot-chains 32", 32):
        settings = json.loads(json.loads(subject.task(f"--schedule cess:0.5 {flags}", 0, 20)[0])[1])
        assert [settings[name] for name in ("chains", "pilot-chains", "max-steps")] == [1, pilots, 20]


def test_one_dimension_alone():
    assert Experiment("table-highdim:512").folder == "table-highdim-512"
    with pytest.raises(UsageError, match="128, 512"):
        Experiment("table-highdim:64")
