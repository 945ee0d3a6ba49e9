"""How well a model hears: word errors, calibration, and when to withhold a text."""
