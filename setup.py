"""Builds the one C extension; everything else is in pyproject.toml."""

from setuptools import Extension, setup

KERNELS = "src/setnet/index/kernels"

setup(
    ext_modules=[
        Extension(
            "setnet.index.kernels._kernels",
            sources=[
                f"{KERNELS}/{name}.c" for name in ("module", "scan", "scan_avx2", "scan_avx512", "match")
            ],
            depends=[f"{KERNELS}/{name}.h" for name in ("kernels", "scan", "match")],
            extra_compile_args=["-O3", "-fno-math-errno", "-fno-trapping-math"],
            optional=True,  # without a compiler the NumPy reference answers, slower
        )
    ]
)
