"""The paper's experiments, one function each."""
