"""
Every incident that this project is there for, brought about, watched, told and ended: from the application to the page.

The exporter, Prometheus and Alertmanager are real, their rules and routes the shipped ones, but FACTOR times as fast.
`make drill` runs all of it and writes the table of the README.
"""
