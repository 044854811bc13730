from contextlib import contextmanager
from spectralz._support import deadline, clock


class Budget:
    def __init__(self, budget=None, work=None):
        self.budget, self.work = budget, work
        if budget is None and work is None:
            self.budget = 10.0

    @classmethod
    def checked(cls, b, w):
        return cls(*deadline.checked_budget(b, w))

    @property
    def seconds(self):
        return self.work / 1e9 if self.work is not None else self.budget

    @contextmanager
    def planning(self):
        with deadline.budgeted(self.budget, self.work) as d:
            yield d
