"""The entry point of the `keyhop` command and of `python -m keyhop`."""

from keyhop.cli.exit_status import end_at_interrupt

end_at_interrupt()  # before the imports of the command, which take most of its first half second


def main() -> int:
    """Run the command line, and return the exit status."""
    from keyhop.cli.main import main as run

    try:
        return run()
    finally:
        end_at_interrupt()


if __name__ == "__main__":
    import sys

    sys.exit(main())
