"""Bodies of requests and answers: their models, how they are read, and their OpenAPI description."""
