"""The steps of the schedule: each takes the problem, a deadline and the answers so far, and yields new answers.

A step yields whenever it has something to keep, so that an interrupt loses nothing.
"""
