"""What happens when the model meets a Hermes it was not made for."""


class Mismatch(SystemExit):
    """Ends the process with a sentence. Hermes catches exceptions around most of its imports and would go on without the rule."""

    def __init__(self, reason):
        super().__init__(f"changedhost: {reason}")


def replace(module, name, make):
    """Put ``make(what is there)`` in the place of ``module``'s attribute ``name``, which has to be there."""
    if not hasattr(module, name):
        raise Mismatch(f"{module.__name__} has no {name}, where a rule of the change has its place")
    setattr(module, name, make(getattr(module, name)))
