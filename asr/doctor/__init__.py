"""Whether a model folder is what it should be, and says what the peers' own programs say."""
