"""Kills workers of shared runs at random moments: the results must be those of one process.

    python3 tests/chaos/workers.py BIN TORCHRUN [--kills N] [--seed S] [ROUND...]

Rounds: `torchrun`, four workers of a torchrun; `hosts`,
three hosts of two workers, each a network namespace with a torchrun of its own (wants root); `lost host`,
where one of them goes for good; `rendezvous`, where that of the store goes, all end with 75, and the same
command goes on; `full disk`, a shared disk without room (wants root). Kills are dealt out over the rounds until there
are so many. Prints a line a round; exits with 1 if there was a finding.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

FILES = ["per_image.csv", "schedule.csv", "run.json"]
INTERRUPTED = 75
LEASE = 2


class Work:
    """A run that is shared, and what it must come to."""

    def __init__(self, programs: Path, torchrun: Path, base: Path, chance: random.Random) -> None:
        self.programs, self.torchrun, self.base, self.chance = programs, torchrun, base, chance
        self.kills = 0
        self.findings: list[str] = []
        self.environment = dict(os.environ, OMP_NUM_THREADS="1")
        vae = base / "vae"
        train = ["--data=synthetic:600", "--hidden=50", "--latent=10", "--epochs=2", "--quiet"]
        self.check([str(programs / "train-vae"), *train, f"--out={vae}"])
        self.command = [str(programs / "eval-loglik"), str(vae / "vae.safetensors"), "--simulate=96",
                        "--chunk=2", "--steps=500", "--step-size=0.5", f"--lease={LEASE}s", "--quiet",
                        "--threads=1"]  # fmt: skip
        self.check([*self.command, f"--out={base / 'alone'}"])

    def check(self, command: list[str]) -> None:
        subprocess.run(command, check=True, env=self.environment, stdout=subprocess.DEVNULL)

    def find(self, what: str) -> None:
        self.findings.append(what)
        print(f"FOUND: {what}", flush=True)

    def start(self, command: list[str], log: Path) -> subprocess.Popen[bytes]:
        with log.open("ab") as out:
            return subprocess.Popen(command, stdout=out, stderr=out, env=self.environment,
                                    start_new_session=True)  # fmt: skip

    def agent(self, out: Path, log: Path, flags: list[str], host: Sequence[str] = (),
              wrapper: Sequence[str] = (), workers: int = 4) -> subprocess.Popen[bytes]:  # fmt: skip
        torchrun = [str(self.torchrun), *flags, f"--nproc-per-node={workers}", "--max-restarts=1000",
                    "--monitor-interval=0.1", "--no-python"]  # fmt: skip
        return self.start([*host, *torchrun, *wrapper, *self.command, f"--out={out}"], log)

    def workers(self, out: Path) -> list[int]:
        """Ids of all processes that work in this folder."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if words[0] == self.command[0].encode() and f"--out={out}".encode() in words:
                    found.append(int(entry.name))
        return found

    def kill_worker(self, out: Path) -> bool:
        workers = self.workers(out)
        if not workers:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.chance.choice(workers), signal.SIGKILL)
            self.kills += 1
        return True

    def compare(self, name: str, out: Path) -> None:
        for file in FILES:
            if not (out / file).exists():
                self.find(f"{name}: no {file}")
            elif (out / file).read_bytes() != (self.base / "alone" / file).read_bytes():
                self.find(f"{name}: {file} differs")
        if left := [*out.rglob("*.tmp")]:
            self.find(f"{name}: left {left[0]}")


def end_of(process: subprocess.Popen[bytes], seconds: float = 300) -> int:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return -1


def until_chunks(out: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None and len(list(out.glob("chunks/*.json"))) < count:
        time.sleep(0.02)


def torchrun(work: Work, out: Path, kills: int) -> None:
    agent = work.agent(out, out.with_suffix(".log"), ["--standalone"])
    while agent.poll() is None:
        time.sleep(work.chance.uniform(0.2, 2.0))
        if kills > 0 and work.kill_worker(out):
            kills -= 1
    if agent.returncode != 0:
        work.find(f"torchrun: code {agent.returncode}: {out.with_suffix('.log').read_text()[-2000:]}")
    work.compare("torchrun", out)


@contextlib.contextmanager
def network(count: int) -> Iterator[list[list[str]]]:
    """So many hosts on a bridge, as the prefixes of commands that run there."""
    bridge = f"cr{os.getpid()}{random.randrange(100)}"  # an earlier one goes away in its own time
    names = [f"{bridge}-{i}" for i in range(count)]

    def ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True, capture_output=True)

    try:
        ip("link", "add", bridge, "type", "bridge")
        ip("link", "set", bridge, "up")
        for i, name in enumerate(names):
            ip("netns", "add", name)
            etc = Path("/etc/netns") / name
            etc.mkdir(parents=True, exist_ok=True)
            # c10d's server looks up the names of those that connect; there is nobody to ask.
            (etc / "resolv.conf").write_text("")
            ip("link", "add", f"{bridge}-{i}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", f"{bridge}-{i}", "master", bridge, "up")
            ip("-n", name, "addr", "add", f"10.77.0.{i + 1}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield [["ip", "netns", "exec", name] for name in names]
    finally:
        for i, name in enumerate(names):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
            with contextlib.suppress(OSError):
                (Path("/etc/netns") / name / "resolv.conf").unlink()
                (Path("/etc/netns") / name).rmdir()
        subprocess.run(["ip", "link", "del", bridge], capture_output=True, check=False)


def agents_of(work: Work, out: Path, hosts: list[list[str]],
              wrapper: Sequence[str] = ()) -> list[subprocess.Popen[bytes]]:  # fmt: skip
    agents = []
    for i, host in enumerate(hosts):
        flags = ["--nnodes=1:3", "--rdzv-backend=c10d", "--rdzv-id=crais",
                 "--rdzv-endpoint=10.77.0.1:29400", f"--local-addr=10.77.0.{i + 1}",
                 "--rdzv-conf=last_call_timeout=2,keep_alive_interval=1,join_timeout=60,"
                 f"is_host={i == 0}"]  # fmt: skip
        log = out.with_suffix(f".{i}.log")
        agents.append(work.agent(out, log, flags, host, wrapper, workers=2))
    return agents


def pull_the_plug(host: list[str]) -> None:
    """Everything that runs on the host."""
    found = subprocess.run(["ip", "netns", "pids", host[-1]], capture_output=True, check=True)
    for pid in found.stdout.split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def logs(out: Path) -> str:
    return "".join(log.read_text()[-1500:] for log in sorted(out.parent.glob(f"{out.name}.*.log")))


def hosts(work: Work, out: Path, kills: int) -> None:
    with network(3) as names:
        agents = agents_of(work, out, names)
        while any(agent.poll() is None for agent in agents):
            time.sleep(work.chance.uniform(0.5, 3.0))
            if kills > 0 and work.kill_worker(out):
                kills -= 1
        if codes := [agent.returncode for agent in agents if agent.returncode != 0]:
            work.find(f"hosts: code {codes[0]}: {logs(out)}")
    work.compare("hosts", out)


def lost_host(work: Work, out: Path, _: int) -> None:
    with network(3) as names:
        agents = agents_of(work, out, names)
        until_chunks(out, 5, agents[0])
        pull_the_plug(names[2])
        work.kills += 1
        until_over(work, out, agents[:2])
        work.compare("lost host", out)
        for name in names:
            pull_the_plug(name)  # agents wait minutes for the one that is lost, at the very end


def rendezvous(work: Work, out: Path, _: int) -> None:
    with network(3) as names:
        # Agents end too, and end their workers; what those say by themselves is asked.
        wrapper = ["bash", "-c", 'trap : TERM; "$@"; echo "ended with $?" >&2', "-"]
        agents = agents_of(work, out, names, wrapper)
        until_chunks(out, 5, agents[0])
        pull_the_plug(names[0])
        work.kills += 1
        for agent in agents:
            end_of(agent)
        while work.workers(out):
            time.sleep(0.1)
        said = "".join(log.read_text() for log in out.parent.glob(f"{out.name}.*.log"))
        lost = len(re.findall(r"the store at 10\.77\.0\.1:\d+ is lost", said))
        if lost != 4 or said.count("ended with 75") != 4 or (out / "summary.json").exists():
            work.find(f"rendezvous: {said}")
        codes = [end_of(agent) for agent in agents_of(work, out, names)]
        if any(codes):
            work.find(f"rendezvous, the same command: codes {codes}: {logs(out)}")
    work.compare("rendezvous", out)


def until_over(work: Work, out: Path, agents: list[subprocess.Popen[bytes]]) -> None:
    """Until the report is there and no worker is."""
    while all(agent.poll() is None for agent in agents):
        if (out / "summary.json").exists() and not work.workers(out):
            return
        time.sleep(0.1)


def full_disk(work: Work, out: Path, _: int) -> None:
    disk = out.with_suffix(".disk")
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    subprocess.run(mount, check=True)
    try:
        log = out.with_suffix(".log")
        store = ["env", "WORLD_SIZE=3", "MASTER_ADDR=localhost", "MASTER_PORT=29411"]
        command = [*work.command, f"--out={disk / 'out'}"]

        def codes() -> list[int]:
            workers = [work.start([*store, f"RANK={i}", *command], log) for i in range(3)]
            return [end_of(worker) for worker in workers]

        for code in codes():
            if code not in (73, 74, INTERRUPTED):  # the store goes with the first
                work.find(f"full disk: code {code}: {log.read_text()}")
        if log.read_text().count("\n") != 3:
            work.find(f"full disk: not a line each: {log.read_text()}")
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        if any(codes()):
            work.find(f"full disk, room again: {log.read_text()}")
        work.compare("full disk", disk / "out")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


ROUNDS = {"torchrun": torchrun, "hosts": hosts, "lost host": lost_host, "rendezvous": rendezvous,
          "full disk": full_disk}  # fmt: skip
KILLED = {"torchrun": 20, "hosts": 18}  # kills of a round


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("programs", type=Path, help="the folder of the programs")
    parser.add_argument("torchrun", type=Path, help="of the same LibTorch")
    parser.add_argument("rounds", nargs="*", help="(all)")
    parser.add_argument("--kills", type=int, default=40, help="at least so many (40)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_intermixed_args()
    if unknown := set(arguments.rounds) - set(ROUNDS):
        sys.exit(f"unknown round '{unknown.pop()}'; choose from {', '.join(ROUNDS)}")
    chosen = arguments.rounds or list(ROUNDS)
    with tempfile.TemporaryDirectory() as scratch:
        chance = random.Random(arguments.seed)
        work = Work(arguments.programs.resolve(), arguments.torchrun.absolute(), Path(scratch), chance)
        number = 0
        while chosen:
            for name in list(chosen):
                before, start = work.kills, time.monotonic()
                number += 1
                try:
                    ROUNDS[name](work, work.base / f"run{number}", KILLED.get(name, 0))
                except (subprocess.CalledProcessError, PermissionError) as error:
                    print(f"skipped: {name}: {error}", flush=True)
                    chosen.remove(name)
                seconds = time.monotonic() - start
                print(f"{name:12} {work.kills - before:3} kills  {seconds:6.1f} s", flush=True)
            again = work.kills < arguments.kills
            chosen = [name for name in chosen if again and name in KILLED]
    print(f"{work.kills} kills, {len(work.findings)} findings")
    return 1 if work.findings else 0


if __name__ == "__main__":
    sys.exit(main())
