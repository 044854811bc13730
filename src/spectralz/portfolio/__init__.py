"""The choice among methods: bounds within an allowance, several estimates within a budget, and one verdict."""
