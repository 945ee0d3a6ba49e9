"""What leaves this machine for a board: the bundle that ``asr-edge`` reads (docs/bundle.md)."""
