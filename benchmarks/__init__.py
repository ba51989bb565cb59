"""What the lab costs, each figure beside a bare baseline of the same run: `make bench`."""
