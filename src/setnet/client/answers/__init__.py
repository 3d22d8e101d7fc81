"""What the server answers, by subject: the types of the client, and of the OpenAPI document."""
