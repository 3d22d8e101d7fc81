"""Commands on other people's stores: PostgreSQL and Immich."""
