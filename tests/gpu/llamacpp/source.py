# SPDX-License-Identifier: Apache-2.0
"""Where the server under test comes from: the source that PyPI's llama-cpp-python bundles, built here and kept between runs, tiny random
models from its own test tool, and a private build with a fault planted."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tarfile

PACKAGE = "llama-cpp-python==0.3.36"
TARGETS = ["llama-server", "test-llama-archs"]
OPTIONS = {"CMAKE_BUILD_TYPE": "Release", "BUILD_SHARED_LIBS": "ON", "LLAMA_BUILD_IS_DEV": "OFF", "LLAMA_BUILD_UI": "OFF",
           "LLAMA_USE_PREBUILT_UI": "OFF", "LLAMA_OPENSSL": "OFF", "LLAMA_BUILD_EXAMPLES": "OFF", "LLAMA_BUILD_TESTS": "ON",
           "LLAMA_BUILD_TOOLS": "ON", "LLAMA_BUILD_SERVER": "ON", "GGML_NATIVE": "OFF", "GGML_AVX2": "ON", "GGML_FMA": "ON",
           "GGML_F16C": "ON", "GGML_OPENMP": "OFF", "CMAKE_BUILD_RPATH_USE_ORIGIN": "ON"}
CUDA = {"GGML_CUDA": "ON", "GGML_CUDA_FA": "OFF", "GGML_CUDA_NCCL": "OFF", "GGML_CUDA_GRAPHS": "ON", "CMAKE_CUDA_ARCHITECTURES": "90"}
ARCHITECTURES = ["qwen3next", "mamba2", "granitehybrid"]


def run(*command, **options):
    """A command that must succeed."""
    subprocess.run([str(c) for c in command], check=True, **options)


def source(cache: pathlib.Path) -> pathlib.Path:
    """The unpacked source."""
    found = list(cache.glob("llama_cpp_python-*/vendor/llama.cpp/CMakeLists.txt"))
    if not found:
        run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", cache, PACKAGE)
        archive = next(cache.glob("llama_cpp_python-*.tar.gz"))
        with tarfile.open(archive) as tar:
            tar.extractall(cache, filter="data")
        found = list(cache.glob("llama_cpp_python-*/vendor/llama.cpp/CMakeLists.txt"))
    return found[0].parent


def build(cache: pathlib.Path, given: pathlib.Path | None, cuda: bool) -> pathlib.Path:
    """Builds the server from the source that was given, or PyPI's; returns the folder of its programs. What is up to date is not built
    again."""
    folder = cache / ("cuda" if cuda else "cpu")
    options = OPTIONS | (CUDA if cuda else {"GGML_CUDA": "OFF"})
    run("cmake", "-G", "Ninja", "-S", given or source(cache), "-B", folder, *(f"-D{k}={v}" for k, v in options.items()),
        stdout=subprocess.DEVNULL)
    run("ninja", "-C", folder, *TARGETS)
    return folder / "bin"


def models(programs: pathlib.Path, folder: pathlib.Path) -> dict[str, pathlib.Path]:
    """One tiny model of random weights for each architecture, the same every time."""
    made = {}
    for name in ARCHITECTURES:
        out = folder / name
        if not list(out.glob("*.gguf")):
            out.mkdir(parents=True, exist_ok=True)
            run(programs / "test-llama-archs", "-a", f"^{name}$", "-s", "1", "-o", out, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL)
        made[name] = sorted(out.glob("*.gguf"))[0]
    return made


# Runs after each replay, where eager operators never come by: it wipes the beginning of one convolution state.
PLANTED = """
        for (int planted = 0; planted < cgraph->n_nodes; planted++) {
            ggml_tensor * state = cgraph->nodes[planted];
            if (state->op == GGML_OP_CPY && state->view_src && ggml_nbytes(state) >= 16 &&
                strncmp(state->view_src->name, "cache_r_l", 9) == 0) {
                CUDA_CHECK(cudaMemsetAsync(state->data, 0, 16, cuda_ctx->stream()));
                break;
            }
        }
"""
LAUNCH = re.compile(r"CUDA_CHECK\(cudaGraphLaunch\([^;]*;")


def plant(build_folder: pathlib.Path, out: pathlib.Path) -> pathlib.Path:
    """Compiles the CUDA back-end once more, with a fault that only graph replays have; returns the folder of the library. The build folder
    and the source stay as they are."""
    library = out / "libggml-cuda.so.0"
    if library.exists():
        return out
    out.mkdir(parents=True, exist_ok=True)
    commands = json.loads((build_folder / "compile_commands.json").read_text())
    entry = next(c for c in commands if c["file"].endswith("/ggml-cuda.cu"))
    origin = pathlib.Path(entry["file"])
    text, n = LAUNCH.subn(lambda m: m.group(0) + PLANTED, origin.read_text())
    if n != 1:
        raise RuntimeError(f"{origin}: {n} places launch a graph, expected 1")
    planted = out / "ggml-cuda.cu"
    planted.write_text(text)
    compile_line = shlex.split(entry["command"])
    object_at = compile_line[compile_line.index("-o") + 1]
    compile_line[compile_line.index("-o") + 1] = str(out / "ggml-cuda.cu.o")
    compile_line = [str(planted) if a == entry["file"] else a for a in compile_line] + ["-I", str(origin.parent)]
    if "-MF" in compile_line:
        compile_line[compile_line.index("-MF") + 1] = str(out / "ggml-cuda.cu.d")
    run(*compile_line, cwd=entry["directory"])
    asked = subprocess.run(["ninja", "-C", build_folder, "-t", "commands", "bin/libggml-cuda.so.0"], capture_output=True, text=True,
                           check=True)
    link = next(line for line in asked.stdout.splitlines() if re.search(r"-o \S*libggml-cuda\.so", line))
    link = link.replace(object_at, str(out / "ggml-cuda.cu.o"))
    link = re.sub(r"-o \S*libggml-cuda\.so\S*", f"-o {library}", link)
    run("sh", "-c", link, cwd=build_folder)
    return out


def cache_folder() -> pathlib.Path:
    """Where builds are kept between runs."""
    base = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    return base / "slotprobe-llamacpp"


def free(*folders: pathlib.Path) -> None:
    """Removes folders that a run has made."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
