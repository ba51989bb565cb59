"""Exploring: fault plans that are drawn, run on the virtual clock, judged by all laws, and made small when one fails.

baseline run ─ moments ─ plan ─ explored scenario ─ trial ─ shrink ─ a scenario file that fails again
"""
