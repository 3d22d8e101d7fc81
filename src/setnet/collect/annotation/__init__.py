"""Who each face is: scores, rules, and a person's answers."""
