"""The paper's experiments: measures, worlds, and one function per experiment."""
