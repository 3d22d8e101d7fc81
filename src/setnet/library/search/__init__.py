"""A query over photos: people, conditions, and the answer in the user's terms."""
