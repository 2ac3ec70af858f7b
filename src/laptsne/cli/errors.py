"""How a command ends early."""


class InputError(ValueError):
    """An error that the user can fix: one line that says what is wrong and what to do."""


class StoppedEarlyWarning(UserWarning):
    """The fit was interrupted from the keyboard, and the embedding is that of the last iteration."""
