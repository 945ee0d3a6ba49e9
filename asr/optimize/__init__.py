"""A faster network with the same text: rewriting passes, each proved on the network at hand.

``passes/`` holds what can be done, one file each; ``rewrite`` decides what is done to one network;
``folder`` writes the result with the record of what was proved.
"""
