"""A faster network with the same text: rewriting passes, each proved on the network at hand.

``passes/`` holds what can be done, one file each; ``rewrite`` decides what is done to one network;
``prepared`` keeps the result, laid out for this machine, so that it loads at once.
"""
