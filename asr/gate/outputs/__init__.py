"""One module per form in which a verdict leaves the house: each has ``text(verdict)``."""
