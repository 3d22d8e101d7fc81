"""Builds the one C extension; everything else is in pyproject.toml."""

from glob import glob

from setuptools import Extension, setup

KERNELS = "src/setnet/engine/kernels/c"

setup(
    ext_modules=[
        Extension(
            "setnet.engine.kernels._kernels",
            sources=sorted(glob(f"{KERNELS}/**/*.c", recursive=True)),
            depends=sorted(glob(f"{KERNELS}/**/*.h", recursive=True)),
            extra_compile_args=["-O3", "-fno-math-errno", "-fno-trapping-math"],
            optional=True,  # without a compiler the NumPy reference answers, slower
        )
    ]
)
