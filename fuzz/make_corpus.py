#!/usr/bin/env python3
"""Makes what scripts/fuzz begins from: seeds, from small files that the programs write, and dictionaries.

    fuzz/make_corpus.py BIN FOLDER     BIN: the folder of the programs; FOLDER: where seeds and dictionaries go

Needs nothing but Python.
"""

import gzip
import io
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[1]
BIN, FOLDER = (pathlib.Path(path).resolve() for path in sys.argv[1:])
IMAGES = bytes((37 * i) % 256 for i in range(12 * 4))


def seed(target, name, content):
    content = content if isinstance(content, bytes) else content.encode()
    if len(content) > 8192:  # more than the fuzzer alters
        return
    folder = FOLDER / "seeds" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name.replace(">", "big-")).write_bytes(content)


def dictionary(target, words):
    (FOLDER / "dictionaries").mkdir(parents=True, exist_ok=True)
    lines = [f'"{"".join(map(escaped, word))}"' for word in sorted(set(words))]
    (FOLDER / f"dictionaries/{target}.dict").write_text("\n".join(lines) + "\n")


def escaped(character):
    return character if character.isalnum() or character in " -_.:,=<>|(){}/" else f"\\x{ord(character):02x}"


def idx(shape, values):
    return struct.pack(">BBBB", 0, 0, 8, len(shape)) + struct.pack(f">{len(shape)}I", *shape) + values


def packed(content):
    return gzip.compress(content, mtime=0)


def bundle(parts):
    """Several files as one input (fuzz/harness.h)."""
    return b"\n".join(b"=== " + name.encode() + b"\n" + content for name, content in parts) + b"\n"


def unzipped(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = [name for name in archive.namelist() if not name.endswith(".debug_pkl")]  # has paths
        return [(name, archive.read(name)) for name in names]


def in_lines(content, key):
    """A safetensors file as description, header and data (fuzz/harness.h)."""
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + length])
    description = header.pop("__metadata__")[key]
    rest = json.dumps(header, separators=(",", ":"))[1:-1]
    return description.encode() + b"\n" + rest.encode() + b"\n" + content[8 + length :]


def with_forces(content):
    """The manifest of a file that has gradients in bfloat16 too: those that it has."""
    length = struct.unpack("<Q", content[:8])[0]
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    described = json.loads(header["__metadata__"]["crais"])
    described["functions"].append("joint_bfloat16")
    header["__metadata__"]["crais"] = json.dumps(described)
    grad = header["check.grad"]
    begin, end = grad["data_offsets"]
    header["check.grad_bfloat16"] = grad | {"data_offsets": [len(data), len(data) + end - begin]}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data + data[begin:end]


def run(work, program, *arguments):
    subprocess.run([BIN / program, *arguments, "--quiet"], check=True, cwd=work, stdout=subprocess.DEVNULL)


def trained(work):
    (work / "train-images-idx3-ubyte").write_bytes(idx((12, 2, 2), IMAGES))
    run(work, *"train-vae --data-dir . --latent 1 --hidden 2 --epochs 2 --out vae".split())
    vae = (work / "vae/vae.safetensors").read_bytes()
    state = (work / "vae/training-state.safetensors").read_bytes()
    seed("safetensors", "checkpoint", vae)
    seed("checkpoint", "bernoulli", in_lines(vae, "crais"))
    seed("training_state", "two-epochs", in_lines(state, "crais_training"))
    other = "train-vae --data-dir . --latent 2 --hidden 2 --hidden 3 --act elu --likelihood gaussian:0.5"
    run(work, *other.split(), *"--binarisation none --epochs 1 --out other".split())
    seed("checkpoint", "gaussian", in_lines((work / "other/vae.safetensors").read_bytes(), "crais"))


def folder_seed(name, folder, run=None):
    parts = [("run.json", (run or folder / "run.json").read_bytes())]
    if (folder / "plan.json").exists():
        parts.append(("sealed plan.json", content_of(folder / "plan.json")))
    for path in sorted(folder.glob("chunks/*.json")):
        parts.append((f"sealed chunks/{path.name}", content_of(path)))
    seed("results", name, bundle(parts))


def content_of(path):
    return json.dumps(json.loads(path.read_text())["content"], separators=(",", ":")).encode()


def evaluated(work):
    small = "--simulate 3 --chunk 2 --chains 2 --steps 3 --pilot-chains 4 --control 0".split()
    evaluation = ["eval-loglik", "vae/vae.safetensors", *small]
    run(work, *evaluation, "--out", "ais")
    folder_seed("ais", work / "ais")
    whole = [(path.relative_to(work / "ais").as_posix(), path.read_bytes()) for path in (work / "ais").rglob("*.json")]
    seed("results", "as-written", bundle(whole))
    run(work, *evaluation, *"--method bidirectional --method iwae:4 --repeats 2 --base encoder --out methods".split())
    folder_seed("methods", work / "methods")
    run(work, *evaluation, "--path", "f:jensen-shannon", "--per-image", "--out", "path")
    folder_seed("learned-path", work / "path")
    # Expectations are estimate-logz's; the reader is the same.
    logz = "estimate-logz normal:1 --problems 3 --chunk 2 --chains 2 --steps 3 --expect moments --out logz"
    run(work, *logz.split())
    folder_seed("expectations", work / "logz", run=work / "ais/run.json")
    seed("json", "run", (work / "ais/run.json").read_bytes())
    seed("json", "summary", (work / "ais/summary.json").read_bytes())
    seed("csv", "per-image", (work / "ais/per_image.csv").read_bytes())
    seed("csv", "schedule", (work / "ais/schedule.csv").read_bytes())
    seed("schedule", "of-a-run", (work / "ais/schedule.csv").read_bytes())
    keys = [key for path in work.rglob("*.json") for key in re.findall(r'"[\w-]+":', path.read_text())]
    dictionary("results", [*keys, "null", "true", "-1", "1e308", "=== chunks/000001.json", "=== sealed plan.json"])


def small_files():
    images, labels = idx((12, 2, 2), IMAGES), idx((12,), bytes(range(12)))
    for name, content in {"images": images, "labels": labels}.items():
        seed("idx", name, content)
        seed("idx", name + "-gzip", packed(content))
        seed("array_file", "idx-" + name, content)
    seed("gzip", "text", packed(b"0.5\n" * 20))
    seed("gzip", "two-members", packed(b"one") + packed(b"two"))
    lines = "".join(" ".join("01"[(i * i + k) % 3 == 0] for i in range(784)) + "\n" for k in range(2))
    seed("amat", "two-images", lines)
    seed("amat", "two-images-gzip", packed(lines.encode()))
    seed("csv", "quoted", '# a comment\nname,beta\r\n"a ""b"", c",0.5\n,1e-3\n')
    seed("csv", "numbers", "0\n0.25\nnan\n1\n")
    seed("schedule", "plain", "0\n0.25\n0.5\n1\n")
    seed("schedule", "column", "step,beta\n0,0\n1,0.5\n2,1\n")
    seed("two_class", "three-features", "1,2.5,0,R\n2,1e-3,1,M\n-1,0,4,R\n")
    seed("json", "all-kinds", '{"a": [1, -2.5e3, true, null, "\\u00e9\\n"], "b": {}}')
    header = {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
              "b": {"dtype": "U8", "shape": [1, 2], "data_offsets": [4, 6]},
              "c": {"dtype": "I64", "shape": [], "data_offsets": [6, 14]}}  # fmt: skip
    text = json.dumps(header, separators=(",", ":")).encode()
    seed("safetensors", "types", struct.pack("<Q", len(text)) + text + bytes(range(14)))
    dictionary("safetensors", ['"dtype":', '"shape":', '"data_offsets":', '"__metadata__":', "F64", "F32", "I64", "U8",
                               "18446744073709551615"])  # fmt: skip
    dictionary("npy", ["descr", "fortran_order", "shape", "True", "False", "<f8", "<f4", "<f2", ">i8", "|b1", "|u1",
                       "<u2", "<u4", "()", "(1,)", "9223372036854775807"])  # fmt: skip


def stored_files():
    """Files of NumPy and crais.export that the tests have."""
    for path in sorted((SOURCE / "tests/io/data").glob("*.npz")):
        content = path.read_bytes()
        seed("zip", path.stem, content)
        seed("array_file", path.name, content)
        seed("npz", path.stem, bundle(unzipped(content)))
        for name, entry in unzipped(content):
            seed("npy", f"{path.stem}-{name[:-4]}", entry)
    models = SOURCE / "tests/models/data"
    manifests = {path.stem: dict(unzipped(path.read_bytes())) for path in sorted(models.glob("*.pt*"))}
    manifests = {name: entries["model/extra/crais.safetensors"] for name, entries in manifests.items()}
    manifests["convolutional"] = (models / "convolutional.safetensors").read_bytes()
    manifests["forces"] = with_forces(manifests["linear_gaussian"])
    for name, content in manifests.items():
        seed("manifest", name, in_lines(content, "crais"))
    for target, file in {"manifest": "model_manifest.cpp", "checkpoint": "checkpoint.cpp"}.items():
        keys = re.findall(r'"([a-z_]+)"', (SOURCE / "models" / file).read_text())
        dictionary(target, [f'"{key}":' for key in keys])


def spec_texts():
    names, keys = set(), set()
    for path in [*(SOURCE / "src").rglob("*.cpp"), *(SOURCE / "models").glob("*.cpp")]:
        text = path.read_text()
        names.update(re.findall(r'Enrol<\w+>\s+\w+\(\s*"([^":[]+)', text))
        names.update(re.findall(r'spec\.name\(\) == "([^"]+)"', text))
        keys.update(re.findall(r'\.(?:number|integer|word)\("([^"]+)"', text))
    for name in names:
        seed("specs", name.replace("/", "-"), name)
    texts = ["laplace:1.1,rounds=20", "constant-rate:32,max-step=0.1", "f:alpha:0.5", "power:0.5", "iwae:500",
             "ghmc:0.8", "normal:3", "mixture:2", "logistic-regression:pima,variance=5", "gaussian:0.5",
             "cess:0.9", "cosine:1e-5", "static:7", "threshold:127", "modes:laplace", "pilot:encoder"]  # fmt: skip
    for i, text in enumerate(texts):
        seed("specs", f"parameters-{i:02}", text)
    dictionary("specs", [f"{key}=" for key in keys] + [f"{name}:" for name in names] + [":", ",", "1e308", "-1", "nan"])


def flag_texts():
    for name, line in {"range": "0:100", "size": "1.5G", "shard": "2/4", "number": "-1e-3"}.items():
        seed("flags", name, line)
    lines = {
        "estimate-logz": ["u1", "--preset", "paper", "--out", "results/u1", "--expect", "moments", "--seed", "3"],
        "eval-loglik": ["vae.safetensors", "--method", "iwae:5", "--indices", "3:9",
                        "--dequantise", "uniform:1", "--shard", "1/2", "--step-size", "0.5"],
        "train-vae": ["--data", "synthetic:60", "--hidden", "20,10", "--betas", "0.9,0.99", "--decay",
                      "cosine:1e-5", "--likelihood", "gaussian:2", "--objective", "iwae:3"],
    }  # fmt: skip
    words = {word for path in (SOURCE / "src").rglob("*.cpp")
             for word in re.findall(r'option::\w+\(\s*"([a-z-]+)"', path.read_text())}  # fmt: skip
    rows = re.findall(r'&E::\w+, "(\w+)", "([a-z-]*)"', (SOURCE / "src/evaluation/option_table.cpp").read_text())
    words |= {flag or name.replace("_", "-") for name, flag in rows}
    for program, arguments in lines.items():
        seed("flags", program, "\n".join([program, *arguments]))
    seed("command_lines", "simulated", "\n".join(lines["eval-loglik"][1:5] + ["--simulate", "3", "--indices", "0:2"]))
    seed("command_lines", "array", "--data\nimages\n--binarisation\nstatic:1\n--limit=3\n--shard\n1/2\n--chunk\n1")
    seed("command_lines", "flat", "--data=flat\n--scale\n255")
    seed("command_lines", "budget", "--data\nimages\n--scale=255\n--budget\n1e3")
    seed("with_flags", "message", "raise `max_steps`, or `pilot_chains`; not `this one` or `plan_per_problem`")
    for target in ("flags", "command_lines"):
        dictionary(target, [f"--{word}" for word in words] + ["--help", "\n", "K", "M", "GiB", ":", "/"])


def main():
    shutil.rmtree(FOLDER / "seeds", ignore_errors=True)
    shutil.copytree(SOURCE / "fuzz/corpus", FOLDER / "seeds")  # what was found before
    small_files()
    stored_files()
    spec_texts()
    flag_texts()
    with tempfile.TemporaryDirectory() as folder:
        trained(pathlib.Path(folder))
        evaluated(pathlib.Path(folder))


if __name__ == "__main__":
    main()
