"""scikit-build-core, against a torch: a wheel fits that minor version alone, and requires it.

The torch is that of the environment which the wheel is for, which a build in isolation does not
see. Where it has none, the build requires one, and so will the wheel.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from importlib import metadata

from scikit_build_core import build as _scikit
from scikit_build_core.build import *  # noqa: F403

SUPPORTED = "torch>=2.7,<2.16"


def _torch() -> metadata.Distribution | None:
    places = [*sys.path, sysconfig.get_path("platlib")]
    return next(iter(metadata.distributions(name="torch", path=places)), None)


def dynamic_metadata(field: str, settings: object = None) -> list[str]:
    """The dependencies: scikit-build-core asks for them."""
    torch = _torch()
    minor = torch and re.match(r"\d+\.\d+", torch.version)
    return [f"torch=={minor[0]}.*" if minor else SUPPORTED, "jinja2", "numpy"]


def _name_torch() -> None:
    """For cmake/torch_of_python.cmake."""
    torch = _torch()
    if os.environ.get("CRAIS_TORCH"):
        return
    if torch is None:
        sys.exit("crais is compiled against torch, and there is none: pip install torch")
    os.environ["CRAIS_TORCH"] = str(torch.locate_file("torch"))


def get_requires_for_build_wheel(config_settings=None):  # type: ignore[no-untyped-def]
    needed = _scikit.get_requires_for_build_wheel(config_settings)
    return needed if _torch() else [*needed, SUPPORTED]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):  # type: ignore[no-untyped-def]
    _name_torch()
    return _scikit.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):  # type: ignore[no-untyped-def]
    _name_torch()
    return _scikit.build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory, config_settings=None):  # type: ignore[no-untyped-def]
    """With the archives of the libraries that a system may lack."""
    subprocess.run(["cmake", "-P", "cmake/dependencies.cmake"], check=True)
    return _scikit.build_sdist(sdist_directory, config_settings)
