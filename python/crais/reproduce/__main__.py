"""`reproduce`, or `python3 -m crais.reproduce`: the command line."""

from __future__ import annotations

import signal
import sys
import warnings
from pathlib import Path

import torch

import crais
from crais import native
from crais.errors import Parser, UsageError, one_line
from crais.reproduce.cells import Options, stop
from crais.reproduce.experiment import NAMES, Experiment, told_of
from crais.reproduce.tables import say


def _parser() -> Parser:
    parser = Parser(
        "reproduce",
        usage="reproduce list | all | EXPERIMENT... | FILE.json... [flags]",
        description="Repeats published experiments, in tables and CSV files.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("names", nargs="+", metavar="NAME", help="experiments of the list, all of them, or files")
    add("--version", action="version", version=f"reproduce {crais.__version__}")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="minutes on two cores (the default)")
    size.add_argument("--full", action="store_true", help="the published sizes: hours")
    add("--seeds", type=int, metavar="N", help="independent repetitions (the experiment's own number)")
    add("--checkpoint", metavar="FILE", default="weights/vae50-mnist.safetensors", help="the VAE [%(default)s]")
    add("--data-dir", metavar="DIR", help="folder of MNIST's files (default: $CRAIS_DATA, ./data)")
    add("--device", metavar="D", default="auto", help="auto, cpu, cuda or cuda:N [auto]")
    add("--threads", type=int, metavar="N", default=0, help="CPU threads; 0 means one for each core [0]")
    add("--quiet", action="store_true", help="no bar of progress on stderr, which tqdm draws where it is installed")
    add("--out", metavar="DIR", default="results", help="a folder DIR/EXPERIMENT for each; results in "
        "DIR/cells are not computed again [results]")  # fmt: skip
    add("--accept-other-version", action="store_true", help="accept results of another build of crais")
    return parser


@one_line("reproduce")
def main(arguments: list[str] | None = None) -> None:
    """Runs experiments. All names and flags are checked before the first, which may take hours."""
    try:
        native.extension()
    except ImportError as error:
        raise UsageError(str(error)) from None
    parser = _parser()
    options: Options = parser.parse_intermixed_args(arguments)
    is_list = options.names == ["list"]
    names = NAMES if is_list or options.names == ["all"] else options.names
    experiments = [Experiment(name) for name in names]
    used = set[str]() if is_list else {*vars(options)} - {"seeds", "checkpoint", "data_dir"}
    used.update(*(experiment.uses() for experiment in experiments if not is_list))
    for flag, value in vars(options).items():
        if flag not in {"names", *used} and value != parser.get_default(flag):
            raise UsageError(f"--{flag.replace('_', '-')} does nothing for {', '.join(options.names)}; leave it out")
    if is_list:
        say("".join(f"{name:23} {one.summary}\n" for name, one in zip(names, experiments, strict=True)))
        return
    if options.threads < 0 or (options.seeds is not None and options.seeds < 2):
        raise UsageError("--threads is at least 0, and --seeds at least 2")
    if not options.out.isprintable():
        raise UsageError("--out is not UTF-8")
    if arguments is None:  # the process is ours
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, stop)
        torch.set_num_threads(1)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: print(f"reproduce: {message}", file=sys.stderr)
        for experiment in experiments:
            with told_of(experiment.file):
                experiment.run(options)
            say(f"Files: {Path(options.out, experiment.folder, 'tables.md')} has all tables\n")


if __name__ == "__main__":
    main()
