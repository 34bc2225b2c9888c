"""python -m cdd, see cdd.commands."""

import sys

from cdd.commands import main

if __name__ == "__main__":
    sys.exit(main())
