"""The partner leg: the model of the partner API and the driver that calls any partner API."""
