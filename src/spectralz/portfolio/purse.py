from spectralz.portfolio.exact_costs import exact_deadline, is_affordable


class Purse:
    def __init__(self, s, with_means):
        self.s, self.m = s, with_means

    def pays(self, plan):
        return is_affordable(plan, exact_deadline(self.s), with_means=self.m)
