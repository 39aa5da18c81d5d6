"""The clocks: ours against NTP servers and against the databases'."""
