"""`crais.load` finds files in the Hub's cache, in folders, and says in one line what is wrong."""

import http.server
import json
import pickle
import sys
import threading

import pytest
import torch

import crais
from crais import safetensors

CHEAP = {"chains": 4, "steps": 8, "progress": False, "base": "prior"}
COMMIT, OTHER = "1" * 40, "2" * 40
CONFIG = {"crais": {"activation": "tanh", "likelihood": "bernoulli"}, "model_type": "vae"}


def weights(model) -> bytes:
    return safetensors.dumps(model.state_dict(), {})


def snapshot(folder, commit: str, files: dict[str, bytes], *refs: str) -> None:
    """Writes files as huggingface_hub lays them out: blobs, links from snapshots, refs."""
    for name, content in files.items():
        blob = folder / "blobs" / f"{commit[:8]}-{name.replace('/', '-')}"
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content)
        link = folder / "snapshots" / commit / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(blob)
    for ref in refs:
        (folder / "refs").mkdir(exist_ok=True)
        (folder / "refs" / ref).write_text(commit)


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """The folder of a repository org/vae in a cache of the Hub, with no network."""
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "hub" / "models--org--vae"


def error_of(kind, *arguments, **options) -> str:
    with pytest.raises(kind) as error:
        crais.load(*arguments, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_evaluate_names_the_call_that_a_model_of_the_hub_needs(compiled, images):
    with pytest.raises(crais.UsageError) as error:
        crais.evaluate("hf://org/vae", images)
    assert str(error.value) == "hf://org/vae is on the Hub: give crais.load('hf://org/vae') in its place"


def test_a_model_of_the_hub_is_evaluated(compiled, cache, mlp, images):
    config = json.dumps(CONFIG).encode()
    snapshot(cache, COMMIT, {"model.safetensors": weights(mlp), "config.json": config}, "main")
    model = crais.load("hf://org/vae")
    assert model.path == str(cache / "snapshots" / COMMIT / "model.safetensors")
    assert model.options == CONFIG["crais"]
    r = crais.evaluate(model, images, **CHEAP)
    wanted = crais.evaluate(mlp, images, likelihood=crais.Bernoulli(), **CHEAP)
    assert r.mean == pytest.approx(wanted.mean, abs=1e-4)
    c = crais.certify(model, num_images=10, **(CHEAP | {"chains": 2}))
    assert c.lower <= c.upper
    # what the call says wins over config.json
    relu = crais.evaluate(model, images, activation="relu", **CHEAP)
    assert abs(relu.mean - r.mean) > 0.01


def test_a_revision_is_a_tag_or_a_commit(cache, mlp):
    snapshot(cache, COMMIT, {"model.safetensors": weights(mlp)}, "main")
    snapshot(cache, OTHER, {"model.safetensors": weights(mlp)}, "v2")
    for revision, commit in (("v2", OTHER), (OTHER, OTHER), (None, COMMIT), ("main", COMMIT)):
        model = crais.load("hf://org/vae", revision=revision)
        assert model.path == str(cache / "snapshots" / commit / "model.safetensors")
        assert model.options == {}
    message = error_of(crais.NoInputError, "hf://org/vae", revision="v3")
    assert message == "hf://org/vae: the cache has no revision v3, and the Hub is out of reach"


def test_a_file_may_be_named_and_has_the_config_beside_it(cache, mlp):
    files = {
        "config.json": b"{}",
        "small/config.json": json.dumps(CONFIG).encode(),
        "small/vae.safetensors": weights(mlp),
    }
    snapshot(cache, COMMIT, files, "main")
    model = crais.load("hf://org/vae/small/vae.safetensors")
    assert model.path.endswith("small/vae.safetensors") and model.options == CONFIG["crais"]


def test_what_is_not_there(cache, mlp):
    message = error_of(crais.NoInputError, "hf://org/vae")
    assert message.startswith("hf://org/vae: not in the cache /") and "out of reach" in message
    snapshot(cache, COMMIT, {"weights.safetensors": weights(mlp)}, "main")
    assert error_of(crais.NoInputError, "hf://org/vae") == (
        "hf://org/vae: no model.safetensors or model.pt2; name a file, as hf://org/vae/FILE"
    )
    assert error_of(crais.NoInputError, "hf://org/vae/a.safetensors", revision="main") == (
        "hf://org/vae/a.safetensors: no a.safetensors at revision main"
    )


@pytest.mark.parametrize("name", ["hf://vae", "hf://", "hf://org/", "hf://org/vae@v2"])
def test_names_of_another_form(cache, name):
    message = error_of(crais.UsageError, name)
    assert message == f"{name}: hf://ORG/MODEL or hf://ORG/MODEL/FILE is expected"


class Bomb:
    def __reduce__(self):
        return exec, ("raise SystemExit('a pickle ran')",)


def test_code_is_refused_unless_it_is_trusted(cache):
    torch.save({}, weights_file := cache.parent.parent / "x.pt")
    packed = weights_file.read_bytes()
    files = {"model.pt2": packed, "w.pt": packed, "w.bin": pickle.dumps(Bomb()), "w.ckpt": packed}
    snapshot(cache, COMMIT, files, "main")
    assert error_of(crais.UsageError, "hf://org/vae") == (
        "hf://org/vae: model.pt2 is a program: trust_code=True takes it; "
        "a .safetensors file is safe"
    )
    for name in ("w.pt", "w.bin", "w.ckpt"):
        assert error_of(crais.UsageError, f"hf://org/vae/{name}") == (
            f"hf://org/vae/{name}: {name} can hold a program, as every pickle can: "
            "trust_code=True takes it; a .safetensors file is safe"
        )
    assert crais.load("hf://org/vae", trust_code=True).path.endswith("/model.pt2")


@pytest.mark.parametrize("content", [
    b"", b"PK\x03\x04", b"PK\x03\x04\0\0\0\0{}", pickle.dumps(Bomb()), b"\x80\x02" + b" " * 20,
])  # fmt: skip
def test_a_name_does_not_make_a_file_safe(cache, content):
    snapshot(cache, COMMIT, {"model.safetensors": content}, "main")
    assert error_of(crais.DataError, "hf://org/vae") == (
        "hf://org/vae: model.safetensors is no safetensors file, whatever its name says"
    )


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ('{"crais": {"out": "/tmp"}}', '"crais" has \'out\'; it may have likelihood, decoder'),
        ('{"crais": {"activation": ["tanh"]}}', 'activation in "crais" must be a string or'),
        ('{"crais": 3}', '"crais" must be an object of likelihood'),
        ("{", "Expecting property name"),
        ("[" * 100_000, "recursion"),
    ],
)
def test_a_damaged_config(cache, mlp, content, wanted):
    files = {"model.safetensors": weights(mlp), "config.json": content.encode()}
    snapshot(cache, COMMIT, files, "main")
    assert wanted in error_of(crais.DataError, "hf://org/vae")


def test_a_config_of_another_kind_says_nothing(cache, mlp):
    files = {"model.safetensors": weights(mlp), "config.json": b'["no object"]'}
    snapshot(cache, COMMIT, files, "main")
    assert crais.load("hf://org/vae").options == {}


def test_a_folder_or_a_file(compiled, tmp_path, mlp, images):
    (tmp_path / "model.safetensors").write_bytes(weights(mlp))
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    for source in (tmp_path, str(tmp_path), tmp_path / "model.safetensors"):
        assert crais.load(source) == crais.ModelFile(
            str(tmp_path / "model.safetensors"), CONFIG["crais"]
        )
    assert len(crais.evaluate(crais.load(tmp_path), images, **CHEAP)) == len(images)
    message = error_of(crais.NoInputError, tmp_path / "none")
    assert message.endswith("none: no such file or folder; models of the Hub are hf://ORG/MODEL")
    message = error_of(crais.UsageError, tmp_path, revision="v1")
    assert message == f"revision is for hf://ORG/MODEL; {tmp_path} is a path"


def test_without_huggingface_hub(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    message = error_of(ImportError, "hf://org/vae")
    assert message == "hf://org/vae needs huggingface_hub: pip install huggingface_hub"


class Hub(http.server.BaseHTTPRequestHandler):
    """Answers as the Hub does: an error code in a header."""

    code = ""

    def do_HEAD(self):
        self.send_response(403 if self.code == "GatedRepo" else 404)
        self.send_header("X-Error-Code", self.code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(monkeypatch, cache):
    """A server on this machine in the Hub's place."""
    constants = pytest.importorskip("huggingface_hub.constants")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "ENDPOINT", address)
        template = address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        yield
        server.shutdown()


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("RepoNotFound", "no such repository, or it is private: `hf auth login`"),
        ("GatedRepo", "the repository is gated: ask for access on its page, then `hf auth login`"),
        ("RevisionNotFound", "the repository has no revision v9"),
        ("EntryNotFound",
         "no model.safetensors or model.pt2 at revision v9; name a file, as hf://org/vae/FILE"),
    ],
)  # fmt: skip
def test_what_the_hub_answers(server, monkeypatch, code, message):
    monkeypatch.setattr(Hub, "code", code)
    assert error_of(crais.NoInputError, "hf://org/vae", revision="v9") == f"hf://org/vae: {message}"
