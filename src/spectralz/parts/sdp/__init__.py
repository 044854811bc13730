"""The diagonal SDP and what its solutions prove."""
