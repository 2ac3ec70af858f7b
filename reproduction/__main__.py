"""``python -m reproduction``; :mod:`reproduction.command` does the work."""

import sys

try:
    from reproduction.command import main
except ModuleNotFoundError as error:
    sys.exit(f'reproduction: {error.name} is not installed; run pip install ".[reproduction]" in the repository.')

sys.exit(main())
