"""The paper's claim: SetNet against baselines trained alike, on identities never seen."""
