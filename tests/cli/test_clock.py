"""A clock that jumps by 30 days, to and fro: it decides no result, no limit of time."""

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .programs import Program, read_json, same

# What clocks of the day say; what counts the seconds since the machine was started is as it is.
JUMPING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

static long shift(void) {
  int (*real)(clockid_t, struct timespec*) = dlsym(RTLD_NEXT, "clock_gettime");
  struct timespec now;
  real(CLOCK_MONOTONIC, &now);
  return (now.tv_nsec / 20000000) % 2 ? 30 * 86400L : -30 * 86400L;
}

int clock_gettime(clockid_t id, struct timespec* now) {
  int (*real)(clockid_t, struct timespec*) = dlsym(RTLD_NEXT, "clock_gettime");
  int failed = real(id, now);
  if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) now->tv_sec += shift();
  return failed;
}

time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(struct timeval* now, void* zone) {
  struct timespec exact;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}
"""
ASKS = """
import time
seen = []
for _ in range(200):
    seen.append(time.time())
    time.sleep(0.001)
print(max(seen) - min(seen) > 1e6)
"""
PLAIN = "--simulate 48 --steps 400 --chains 8 --chunk 4 --step-size 0.5".split()


@pytest.fixture(scope="module")
def jumping(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of programs whose clock jumps."""
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("there is no cc, to build a clock that jumps")
    folder = tmp_path_factory.mktemp("clock")
    (folder / "jumping.c").write_text(JUMPING)
    made = [compiler, "-shared", "-fPIC", "-o", "jumping.so", "jumping.c", "-ldl"]
    subprocess.run(made, cwd=folder, check=True)
    env = {"LD_PRELOAD": str(folder / "jumping.so")}
    done = subprocess.run([sys.executable, "-c", ASKS], env=env, capture_output=True, text=True)
    if done.stdout != "True\n":
        pytest.skip("this machine's programs do not ask a clock that is loaded before")
    return env


@pytest.fixture(scope="module")
def whole(vae: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run whose clock goes on as it should."""
    folder = tmp_path_factory.mktemp("whole")
    Program("eval-loglik", folder).succeed(vae, *PLAIN, "--out", "whole")
    return folder / "whole"


def alike(whole: Path, folder: str) -> None:
    for file in ("per_image.csv", "run.json", "plan.json", "schedule.csv"):
        same(whole / file, f"{folder}/{file}")


def test_results_and_progress(
    eval_loglik: Program, vae: Path, whole: Path, jumping: dict[str, str]
) -> None:
    begun = time.monotonic()
    done = eval_loglik.succeed(vae, *PLAIN, "--max-time", "1h", "--out", "jumped", env=jumping)
    took = time.monotonic() - begun
    alike(whole, "jumped")
    assert 0 < read_json("jumped/summary.json")["seconds"] <= took
    said = re.search(r"48/48 images .* in ([0-9.]+) s", done.stderr)
    assert said and float(said[1]) <= took + 0.1, done.stderr


def test_a_limit_of_time(eval_loglik: Program, vae: Path, jumping: dict[str, str]) -> None:
    """It ends neither at once nor never."""
    long = [vae, *"--simulate 400 --chunk 4 --threads 1 --steps 1000 --quiet".split()]
    begun = time.monotonic()
    args = [*long, "--max-time", "2s", "--out", "limited"]
    eval_loglik.expect(75, "time is up", args=args, env=jumping)
    assert time.monotonic() - begun > 1


def test_training(train_vae: Program, jumping: dict[str, str]) -> None:
    train = "--data synthetic:60 --hidden 8 --latent 4 --epochs 2 --quiet --out".split()
    train_vae.succeed(*train, "plain")
    train_vae.succeed(*train, "jumped", env=jumping)
    same("plain/vae.safetensors", "jumped/vae.safetensors")
