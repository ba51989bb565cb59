"""What stands between the partner API model and programs that nobody here wrote."""
