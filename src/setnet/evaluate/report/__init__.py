"""Records of experiments, and the tables, plots and pages made from them."""
