"""What each command of the lab does; `lab.cli` only names them, so that `lab --help` is instant."""
