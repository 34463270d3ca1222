"""Prints flags of the linker for what runs on systems of 2018 (manylinux_2_28), whatever compiles it.

    python older_system.py FOLDER    makes in FOLDER what they link to

libc and libm are ziglang's stubs of glibc 2.28. libstdc++.so.6 offers as little as that of GCC 7, since
LibTorch shares its types; what is newer is compiled in, from the compiler's libstdc++.a.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

GLIBC = "2.28"
NEWEST = {"GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11)}  # of GCC 7, auditwheel's limits
KINDS = {"OBJECT": ("object", ".data"), "TLS": ("tls_object", '.tdata,"awT",@progbits')}
# glibc 2.32 says here that a program has no threads: an older one never does.
SINGLE_THREADED = '__attribute__((visibility("hidden"))) char __libc_single_threaded;\n'


def run(*command: object, **options: Any) -> str:
    return subprocess.run([*map(str, command)], check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def of_compiler(library: str) -> str:
    return run("g++", f"-print-file-name={library}").strip()


def glibc(folder: Path) -> None:
    """Has zig link a program, which leaves the stubs in its cache."""
    cache, program = folder / "zig", folder / "main.c"
    program.write_text("int main() { return 0; }\n")
    target = f"{platform.machine()}-linux-gnu.{GLIBC}"
    run(sys.executable, "-m", "ziglang", "cc", "-O2", "-target", target, program, "-o", folder / "main",
        env={**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(cache), "ZIG_LOCAL_CACHE_DIR": str(cache)})  # fmt: skip
    for name in ("libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "libc_nonshared.a", "crt1.o"):
        shutil.copy(next(cache.rglob(name)), folder / ("Scrt1.o" if name == "crt1.o" else name))


def libstdcxx(folder: Path) -> None:
    """A library without code, with the names and versions of GCC 7's, and an archive of what is newer."""
    symbols: dict[str, tuple[tuple[int, ...], str, str, str]] = {}  # version, its name, kind and size
    of_one = re.compile(r" +\d+: \w+ +(\w+) (\w+) +\w+ +DEFAULT +\d+ (\S+?)@@?((GLIBCXX|CXXABI)_([\d.]+))")
    for line in run("readelf", "--wide", "--dyn-syms", of_compiler("libstdc++.so.6")).splitlines():
        if found := of_one.fullmatch(line):
            size, kind, name, version, versions, numbers = found.groups()
            number = tuple(map(int, numbers.split(".")))
            if number <= NEWEST[versions] and (name not in symbols or symbols[name][0] < number):
                symbols[name] = number, version, kind, size
    lines = []
    for index, (name, (_, version, kind, size)) in enumerate(symbols.items()):
        type_, section = KINDS.get(kind, ("function", ".text"))
        lines += [f".section {section}", f".globl s{index}", f".type s{index}, @{type_}", f".size s{index}, {size}",
                  f".symver s{index}, {name}@@{version}, remove", f"s{index}: .skip {size}"]  # fmt: skip
    (folder / "stub.s").write_text("\n".join(lines) + "\n")
    (folder / "versions").write_text(
        "".join(f"{version} {{}};\n" for version in sorted({one[1] for one in symbols.values()}))
    )
    run("g++", "-shared", "-nostdlib", "-Wl,-soname,libstdc++.so.6", f"-Wl,--version-script={folder / 'versions'}",
        folder / "stub.s", "-o", folder / "libstdc++.so.6")  # fmt: skip
    shutil.copy(of_compiler("libstdc++.a"), folder / "libstdc++_newer.a")
    run("g++", "-x", "c", "-c", "-fPIC", "-", "-o", folder / "single_threaded.o", input=SINGLE_THREADED)
    run("ar", "r", folder / "libstdc++_newer.a", folder / "single_threaded.o")


def main(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    glibc(folder)
    libstdcxx(folder)
    c = f"{folder}/libc.so.6 {folder}/libc_nonshared.a AS_NEEDED({folder}/libpthread.so.0 {folder}/libdl.so.2)"
    (folder / "libc.so").write_text(f"INPUT({c})\n")
    (folder / "libm.so").write_text(f"INPUT({folder}/libm.so.6)\n")
    (folder / "libstdc++.so").write_text(f"INPUT({folder}/libstdc++.so.6 {folder}/libstdc++_newer.a {c})\n")
    archives = "libstdc++_newer.a:libc_nonshared.a"
    print(f"-B{folder} -L{folder} -Wl,--exclude-libs,{archives} -Wl,--allow-shlib-undefined")


main(Path(sys.argv[1]).absolute())
