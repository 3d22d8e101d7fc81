"""Builds the one C extension; everything else is in pyproject.toml."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "setnet.index._kernels",
            sources=["src/setnet/index/_kernels.c"],
            extra_compile_args=["-O3", "-fno-math-errno", "-fno-trapping-math"],
            optional=True,  # without a compiler the NumPy reference answers, slower
        )
    ]
)
