"""Writes the .npz files of this folder, which tests/data/array_file_test.cpp reads (NumPy 2.4.6 wrote them).

python3 make_numpy_files.py
"""

import os

import numpy as np

os.chdir(os.path.dirname(os.path.abspath(__file__)))
counted = np.arange(6).reshape(2, 3)
arrays = {
    code: counted.astype(code)
    for code in ("b1", "u1", "i1", "i2", "u2", "i4", "u4", "i8", "f2", "f4", "f8", ">f4", ">i8")
}
np.savez("arrays.npz", fortran=np.asfortranarray(counted.astype("f4")), **arrays)
np.savez_compressed("compressed.npz", x=np.zeros((100, 784), "u1"), y=np.arange(100) % 10)
