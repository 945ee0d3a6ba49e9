"""One transcription looked at from outside: calls into native code, allocations, nodes, locks.

``watch.py`` stands beside the pipeline, ``natives.py`` knows which library a function belongs to,
``nodes.py`` reads ONNX Runtime's own profile, ``locks.py`` sees whether the interpreter lock was
let go of; ``run.py`` puts them together, ``summary.py`` counts, ``trace.py`` writes, ``account.py``
compares with an account in which every call and every block of memory has its reason.
"""
