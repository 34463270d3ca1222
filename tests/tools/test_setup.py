"""scripts/setup on machines that are made up: which LibTorch it takes, and what it says otherwise."""

from pathlib import Path

import pytest

from .projects import Project

# What dpkg-query says where everything is installed but one package.
INSTALLED = 'shift 2; printf "installed %s\\n" "$@" | grep -v -x "installed {}"'


@pytest.fixture(autouse=True)
def _has_packages_and_no_network(project: Project) -> None:
    project.take("common.sh", "setup")
    project.fake("dpkg-query", INSTALLED.format("nothing"))
    project.fake("apt-get", f'echo "apt-get $*" >>{project.folder}/apt-calls; exit 100')
    project.fake("python3", "exit 1")
    project.fake("sudo", "exit 1")
    project.fake("id", "echo 1000")


def libtorch(folder: Path, version: str) -> Path:
    """A folder that looks like LibTorch."""
    headers = folder / "include/torch/csrc/api/include/torch"
    configuration = folder / "share/cmake/Torch"
    for each in (folder / "include/ATen", headers, folder / "lib", configuration):
        each.mkdir(parents=True)
    (folder / "include/ATen/ATen.h").touch()
    (folder / "lib/libtorch_cpu.so").touch()
    (configuration / "TorchConfig.cmake").touch()
    major, minor = version.split(".")
    (headers / "version.h").write_text(f"#define TORCH_VERSION_MAJOR {major}\n#define TORCH_VERSION_MINOR {minor}\n")
    return folder


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return libtorch(tmp_path / "new", "2.6")


@pytest.fixture
def other(tmp_path: Path) -> Path:
    return libtorch(tmp_path / "other", "2.7")


def chosen(project: Project) -> str:
    return (project.folder / "build/libtorch").read_text().splitlines()[0]


def asked_apt(project: Project) -> bool:
    return (project.folder / "apt-calls").exists()


@pytest.mark.parametrize(
    ("code", "words", "args"),
    [
        (64, "unknown argument '--libtroch'", "--libtroch pip"),
        (64, "--libtorch needs a value", "--libtorch"),
        (64, "--for takes run, test or ci, not 'fun'", "--for fun"),
        (0, "scripts/setup [--libtorch auto|pip|PATH]", "--help"),
    ],
)
def test_its_arguments(project: Project, code: int, words: str, args: str) -> None:
    project.expect(code, words, "scripts/setup", *args.split())


def test_takes_the_libtorch_that_is_named(project: Project, new: Path, other: Path) -> None:
    words = f"LibTorch 2.6, named by --libtorch: {new}"
    project.expect(0, words, "scripts/setup", "--libtorch", new)
    assert chosen(project) == str(new)
    project.expect(0, "(as chosen before)", "scripts/setup")
    env = {"Torch_DIR": f"{other}/share/cmake/Torch"}
    project.expect(0, "LibTorch 2.7, named by Torch_DIR", "scripts/setup", env=env)
    assert chosen(project) == str(other)
    env = {"CMAKE_PREFIX_PATH": f"/nowhere:{new}"}
    project.expect(0, "LibTorch 2.6, named by CMAKE_PREFIX_PATH", "scripts/setup", env=env)
    assert chosen(project) == str(new)


def test_keeps_its_choice_where_another_will_not_do(project: Project, tmp_path: Path, new: Path) -> None:
    old, old_abi = libtorch(tmp_path / "old", "2.5"), libtorch(tmp_path / "old-abi", "2.6")
    (old_abi / "share/cmake/Torch/TorchConfig.cmake").write_text('set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=0")\n')
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    project.expect(0, "LibTorch 2.6", "scripts/setup", "--libtorch", new)
    for folder, words in (
        (old, f"LibTorch 2.5 in {old}; 2.6 is the oldest"),
        (old_abi, "C++ ABI of before 2011"),
        (nothing, "holds no include/ATen/ATen.h"),
        (nothing, "One of these gives one"),
    ):
        project.expect(69, words, "scripts/setup", "--libtorch", folder)
    assert chosen(project) == str(new)


def test_takes_the_torch_of_python(project: Project, other: Path) -> None:
    python = project.fake("python3", f'echo "{other}"')
    words = f"LibTorch 2.7, the torch that {python} imports"
    project.expect(0, words, "scripts/setup", *"--libtorch auto".split())
    assert chosen(project) == str(other)


def test_chooses_anew_where_the_choice_has_become_too_old(project: Project, tmp_path: Path, other: Path) -> None:
    old = libtorch(tmp_path / "old", "2.5")
    (project.folder / "build/libtorch").write_text(f"{old}\nLibTorch 2.5, chosen before\n")
    project.fake("python3", f'echo "{other}"')
    project.expect(0, "LibTorch 2.7", "scripts/setup")
    assert chosen(project) == str(other)


def test_says_what_to_install_where_it_may_not(project: Project) -> None:
    project.fake("dpkg-query", INSTALLED.format("zlib1g-dev"))
    install = "apt-get update && apt-get install -y --no-install-recommends zlib1g-dev"
    project.expect(69, install, "scripts/setup")
    assert not asked_apt(project)
    project.fake("id", "echo 0")
    project.expect(69, "apt could not install: zlib1g-dev", "scripts/setup")
