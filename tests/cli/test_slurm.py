"""eval-loglik on a cluster: runs that end in time or by a warning, and an array of jobs.

The script of submit runs under a Slurm that is made of three scripts.
"""

import re
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from .programs import Done, Program, environment, lines, refusals, same

MANY = "--simulate 64 --chains 8 --chunk 4 --step-size 0.5".split()


# --- A run that ends in time, and one that is warned, go on to the bytes of one left alone.
@dataclass
class Long:
    """A run that takes this machine seconds, and its files when it was left alone."""

    steps: int
    args: list[str]
    whole: Path


@pytest.fixture(scope="module")
def long(vae: Path, tmp_path_factory: pytest.TempPathFactory) -> Long:
    folder = tmp_path_factory.mktemp("long")
    program = Program("eval-loglik", folder)

    def args(steps: int) -> list[str]:
        return [str(vae), *MANY, "--steps", str(steps), "--quiet"]

    steps = 250
    while steps < 64000:
        shutil.rmtree(folder / "timed", ignore_errors=True)
        timed = ["--threads", "1", "--out", "timed", "--max-time", "1s"]
        if program.run(*args(steps), *timed).returncode == 75:
            break
        steps *= 2
    # Three times what can be stopped by a second: by then the machine may have less to do.
    steps *= 3
    program.succeed(*args(steps), "--out", "whole")
    return Long(steps, args(steps), folder / "whole")


def test_ends_in_time_and_goes_on(eval_loglik: Program, long: Long) -> None:
    timed = [*long.args, "--threads", "1", "--out", "timed", "--max-time", "1s"]
    eval_loglik.expect(75, "time is up", "of 64 images done", "--resume", args=timed)
    assert not Path("timed/summary.json").exists(), "finished"
    eval_loglik.succeed(*long.args, "--out", "timed", "--max-time", "1h", "--resume")
    same(long.whole / "per_image.csv", "timed/per_image.csv")
    same(long.whole / "run.json", "timed/run.json")


@refusals(
    (64, "--max-time 1h", "--max-time", "--out"),
    (64, "--max-time 10 --out never", "--max-time", "55m"),
)
def test_refuses_times(
    eval_loglik: Program, vae: Path, code: int, args: list[str], words: list[str]
) -> None:
    eval_loglik.expect(code, *words, args=[vae, *MANY, "--quiet", *args])


def test_estimate_logz_ends_in_time(estimate_logz: Program) -> None:
    flags = "u1 --base prior --witness none --chunk 1 --chains 4096 --problems 1000 --quiet"
    args = [*flags.split(), "--out", "logz", "--max-time", "1s"]
    estimate_logz.expect(75, "time is up", "--resume", args=args)


def test_a_warned_run_goes_on(eval_loglik: Program, long: Long) -> None:
    """SIGUSR1 warns, and SIGTERM follows."""
    job = eval_loglik.start(*long.args, "--threads", "1", "--out", "warned")
    job.until(Path("warned/chunks/000000.json").exists)
    job.send(signal.SIGUSR1)
    job.send(signal.SIGTERM)
    done = job.end()
    assert done.returncode == 75, done.stderr
    said = "interrupted; .* of 64 images done.*--resume"
    assert re.search(said, done.stderr), done.stderr
    assert not Path("warned/summary.json").exists(), "finished before"
    eval_loglik.succeed(*long.args, "--out", "warned", "--resume")
    same(long.whole / "per_image.csv", "warned/per_image.csv")


# --- submit: what the script does, under an sbatch that runs each task at once, and again where it
# asks for it. The second task is warned once, after its first chunk.
SBATCH = r"""#!/usr/bin/env bash
set -u
dependency='' tasks=0 output=/dev/null
for argument in "$@"; do
  case $argument in
    --array=1-*) tasks=${argument#--array=1-} ;;
    --dependency=afterok:*) dependency=${argument#--dependency=afterok:} ;;
    --output=*) output=${argument#--output=} ;;
  esac
done
printf '%s\n' "$@" >>"$FAKE/sbatch.log"
id=$(($(cat "$FAKE/id" 2>/dev/null || echo 100) + 1))
echo $id >"$FAKE/id"
cat >"$FAKE/script.$id"
read -r first <"$FAKE/script.$id"
[[ $first = '#!'* ]] || exit 1
bash -n "$FAKE/script.$id" || exit 1
if command -v shellcheck >/dev/null; then
  shellcheck --norc --severity=warning "$FAKE/script.$id" >&2 || exit 1
fi
if [ -n "$dependency" ] && [ ! -e "$FAKE/ok.$dependency" ]; then exit 1; fi
# no pattern that sbatch knows
[[ $(sed 's/%%//g; s/%[Aaj]//g' <<<"$output") = *%* ]] && exit 1
status=0
log() { echo "${output/\%A_%a/${id}_$1}" | sed "s/%j/$id/; s/%%/%/g"; }
export SLURM_JOB_ID=$id SLURM_PROCID=0
if [ "$tasks" = 0 ]; then
  bash "$FAKE/script.$id" >>"$(log 0)" 2>&1 || status=1
else
  export SLURM_ARRAY_JOB_ID=$id SLURM_ARRAY_TASK_COUNT=$tasks
  export SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_STEP=1
  for task in $(seq "$tasks"); do
    for _ in {1..9}; do # one that asks for ever is given up
      SLURM_ARRAY_TASK_ID=$task bash "$FAKE/script.$id" >>"$(log "$task")" 2>&1 || status=1
      rm "$FAKE/requeue.${id}_$task" 2>/dev/null || break
    done
  done
fi
[ $status = 0 ] && touch "$FAKE/ok.$id"
echo "$id;cluster"
"""
SCONTROL = r"""#!/usr/bin/env bash
[ "$1" = requeue ] && touch "$FAKE/requeue.$2" && echo "$2" >>"$FAKE/requeues"
"""
SRUN = r"""#!/usr/bin/env bash
set -u
[ -n "${FAKE_STATUS:-}" ] && exit "$FAKE_STATUS"
export SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1
while [[ $1 = --* ]]; do
  [[ $1 = --ntasks=* ]] && SLURM_STEP_NUM_TASKS=${1#--ntasks=}
  shift
done
"$@" &
pid=$!
if [ "$SLURM_ARRAY_TASK_ID" = 2 ] && [ ! -e "$FAKE/warned" ]; then
  touch "$FAKE/warned"
  until ls "$FAKE_OUT"/shards/2-of-*/chunks/*.json >/dev/null 2>&1; do
    kill -0 $pid 2>/dev/null || break
    sleep 0.02
  done
  kill -USR1 $pid
fi
wait $pid
"""


@dataclass
class Cluster:
    """A Slurm in a folder, and what submit wrote for it."""

    folder: Path
    out: Path
    script: str

    @property
    def fake(self) -> Path:
        return self.folder / "fake"

    def submit(self, script: str, **env: str) -> Done:
        """Runs a script where its user is elsewhere."""
        path = f"{self.folder / 'bin'}:{environment()['PATH']}"
        own = {"PATH": path, "FAKE": str(self.fake), "FAKE_OUT": str(self.out)}
        (self.folder / "script.sh").write_text(script)
        return subprocess.run(
            ["bash", self.folder / "script.sh"],
            cwd="/",
            env=environment({**own, **env}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def logs(self) -> str:
        return "".join(log.read_text() for log in sorted((self.out / "logs").iterdir()))


@pytest.fixture
def cluster(eval_loglik: Program, long: Long, vae: Path, tmp_path: Path) -> Cluster:
    """Three tasks of the long run, in folders whose names a shell would like to read."""
    (tmp_path / "fake").mkdir()
    (tmp_path / "bin").mkdir()
    for name, text in (("sbatch", SBATCH), ("scontrol", SCONTROL), ("srun", SRUN)):
        tool = tmp_path / "bin" / name
        tool.write_text(text)
        tool.chmod(0o755)
    model = Path('its a "model\'s"/a $model.safetensors')
    model.parent.mkdir()
    shutil.copy(vae, model)
    out = "my 100% 'out'"
    flags = [*MANY, "--steps", str(long.steps), "--quiet", "--out", out, "--tasks", "3"]
    flags += "--time 2:00:00 --cpus 2 --sbatch --account=me --sbatch".split()
    done = eval_loglik.succeed("submit", "slurm", model, *flags, "--partition=long --mem=2G")
    assert not Path(out).exists(), "submit made a folder"
    return Cluster(tmp_path, tmp_path / out, done.stdout)


def test_the_script_is_sound(cluster: Cluster) -> None:
    Path("script.sh").write_text(cluster.script)
    checks = [["bash", "-n", "script.sh"]]
    if shutil.which("shellcheck"):
        checks.append("shellcheck --norc --severity=warning script.sh".split())
    for check in checks:
        done = subprocess.run(check, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "--max-time 6600s --threads 2" in cluster.script


def test_the_script_runs_all_tasks(cluster: Cluster, long: Long) -> None:
    done = cluster.submit(cluster.script)
    assert done.returncode == 0, done.stderr + cluster.logs()
    same(long.whole / "per_image.csv", cluster.out / "merged/per_image.csv")
    assert (cluster.fake / "requeues").read_text() == "101_2\n"
    assert (cluster.out / "logs/101_2.txt").exists()
    assert set(lines(cluster.fake / "sbatch.log")) >= {
        "--array=1-3", "--requeue", "--signal=USR1@60", "--time=0-02:00:00", "--cpus-per-task=2",
        "--partition=long", "--mem=2G", "--account=me", "--dependency=afterok:101",
    }  # fmt: skip
    done = cluster.submit(cluster.script)
    assert done.returncode == 0, done.stderr
    same(long.whole / "per_image.csv", cluster.out / "merged/per_image.csv")


def test_a_task_that_fails_for_good_is_not_requeued(cluster: Cluster) -> None:
    assert cluster.submit(cluster.script, FAKE_STATUS="65").returncode != 0
    assert (cluster.fake / "sbatch.log").exists()
    assert not (cluster.fake / "requeues").exists(), "requeued after exit 65"
    assert not (cluster.out / "merged").exists(), "merged after exit 65"


def test_a_task_that_finished_nothing_is_not_requeued(cluster: Cluster) -> None:
    """It had all its time."""
    (cluster.out / "logs").mkdir(parents=True)
    assert "-ge 6600" in cluster.script
    futile = cluster.script.replace("-ge 6600", "-ge 0")
    assert cluster.submit(futile, FAKE_STATUS="75").returncode != 0
    assert not (cluster.fake / "requeues").exists(), "requeued in vain"
    assert "longer --time" in cluster.logs()


def test_submit_passes_a_consent_on(eval_loglik: Program, vae: Path) -> None:
    flags = "--simulate 50 --chunk 8 --out never --tasks 2 --accept-other-version".split()
    said = eval_loglik.succeed("submit", "slurm", vae, *flags).stdout
    assert said.count("--accept-other-version") == 2, "not to the tasks and their merge"


# --- What submit refuses.
@refusals(
    (64, "--tasks 2 --shard 1/2", "--shard"),
    (64, "--tasks 2 --resume", "--resume"),
    (64, "--tasks 2 --overwrite", "--overwrite"),
    (64, "--tasks 2 --max-time 1h", "--max-time"),
    (64, "--tasks 2 --threads 2", "--threads"),
    (64, "--tasks 2 --dry-run", "--dry-run"),
    (64, "--tasks 8", "--tasks", "7 chunks"),
    (64, "", "--tasks"),
    (64, "--tasks 0", "--tasks"),
    (64, "--tasks 2 --time soon", "--time"),
    (64, "--tasks 2 --time 2m", "--time", "3m"),
    (64, "--tasks 2 --sbatch gpu", "--sbatch", "dash"),
    (64, "--tasks 2 --schedule fast", "unknown schedule"),
    (64, "--tasks 2 --device tpu", "--device"),
)
def test_submit_refuses(
    eval_loglik: Program, vae: Path, code: int, args: list[str], words: list[str]
) -> None:
    task = ["submit", "slurm", vae, *"--simulate 50 --chunk 8 --out never".split()]
    eval_loglik.expect(code, *words, args=[*task, *args])
    assert not Path("never").exists(), "submit made a folder"


@refusals(
    (64, "submit slurm MODEL --tasks 2", "--out"),
    (64, "submit pbs MODEL --out never --tasks 2", "unknown scheduler 'pbs'", "slurm"),
    (64, "submit slurm --out never --tasks 2", "submit slurm MODEL"),
    (64, "--quiet submit slurm MODEL --out never", "submit comes first"),
    (64, "MODEL --tasks 2", "unknown flag --tasks"),
    (66, "submit slurm missing.safetensors --out never --tasks 2", "missing.safetensors"),
)
def test_refuses_other_commands(
    eval_loglik: Program, vae: Path, code: int, args: list[str], words: list[str]
) -> None:
    given = [str(vae) if arg == "MODEL" else arg for arg in args]
    eval_loglik.expect(code, *words, args=given)
    assert not Path("never").exists(), "submit made a folder"


def test_submit_refuses_an_empty_option(eval_loglik: Program, vae: Path) -> None:
    task = ["submit", "slurm", vae, *"--simulate 50 --chunk 8 --out never --tasks 2".split()]
    eval_loglik.expect(64, "--sbatch", args=[*task, "--sbatch", ""])
    assert not Path("never").exists(), "submit made a folder"


def test_submits_for_devices_that_are_elsewhere(eval_loglik: Program, vae: Path) -> None:
    flags = "--simulate 50 --chunk 8 --out never --tasks 2 --device cuda".split()
    assert "--device cuda" in eval_loglik.succeed("submit", "slurm", vae, *flags).stdout
    assert not Path("never").exists(), "submit made a folder"


def test_submit_has_help(eval_loglik: Program) -> None:
    assert "--tasks" in eval_loglik.succeed("submit", "--help").stdout
