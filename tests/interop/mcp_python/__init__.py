"""Small programs over the two lines of the official Python client. They run in environments of their own."""
