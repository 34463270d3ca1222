"""Models on a device that is no CPU: a mock device, and a GPU where there is one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

# LibTorch wants to know of a device before its first gradient: each device has its own process.
CHECKS = Path(__file__).with_name("checks_on_device.py")


@pytest.mark.parametrize("device", ["mock", "cuda"])
def test_models_on(compiled, device):
    library = Path(os.environ.get("CRAIS_BUILD", "/nowhere")) / "tests" / "mock_device.so"
    if device == "mock" and not library.exists():
        pytest.skip(f"the mock device is not built: there is no {library}")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "pytest", "-q", "-p", "no:cacheprovider", CHECKS],
        capture_output=True, text=True, timeout=600,
        env=os.environ | {"CRAIS_TEST_DEVICE": device, "CRAIS_MOCK_DEVICE": str(library)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
