# SPDX-License-Identifier: GPL-3.0-or-later
"""What a recording of several runs has of each, read by SQL as anyone may."""

from support import Recording


class Runs(Recording):
    def __init__(self, path):
        super().__init__(path)
        assert self.unbalanced() == []
        self.numbers = list(range(1, int(self.meta["runs"]) + 1))
        self.events = dict(self.sql("SELECT run, value FROM run_ledger WHERE name = 'events'"))
        assert sorted(self.events) == self.numbers
        assert sum(self.events.values()) == self.ledger["events"]

    def of_each(self, key):
        """A meta entry by run."""
        values = dict(self.sql("SELECT run, value FROM run_meta WHERE key = ?", key))
        return [values.get(number) for number in self.numbers]

    def calls(self, number):
        """Calls and bytes by stack and function."""
        return {(stack, function): (calls, size) for stack, function, calls, size in self.sql(
            "SELECT c.stack, c.function, sum(c.calls), sum(c.bytes) FROM counts c "
            "JOIN processes p ON p.id = c.process WHERE p.run = ? GROUP BY 1, 2", number)}

    def functions_of(self, number):
        """Calls by function of the allocator."""
        totals = {}
        for (_, function), (calls, _) in self.calls(number).items():
            totals[function] = totals.get(function, 0) + calls
        return totals

    def callers(self, number):
        """Calls of malloc by who called it."""
        return dict(self.sql(
            "SELECT c.caller, sum(c.calls) FROM calls c JOIN processes p ON p.id = c.process "
            "WHERE p.run = ? AND c.function = 'malloc' GROUP BY 1", number))
