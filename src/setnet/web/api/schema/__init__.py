"""The bodies of requests and answers, and the cursors between pages."""
