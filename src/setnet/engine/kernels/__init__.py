"""The scan kernels: C for each instruction set, their NumPy reference, and the layout of the codes."""
