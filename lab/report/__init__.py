"""What people and machines read of a run: terminal, JSON, JUnit and HTML, each a view of its verdict and journal."""
