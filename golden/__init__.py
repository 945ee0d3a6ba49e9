"""Golden values: cases, independent references, expected dumps and the comparison."""
