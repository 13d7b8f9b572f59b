"""The CDK app: context -> config -> one stack."""

import sys

from aws_cdk import App

from infra.config import Config, ConfigError
from infra.layer import LayerError
from infra.stack import KeyhopStack


def main() -> int:
    """Synthesize; what the user can mend is one sentence and exit code 1."""
    # Not by itself at exit: after an error there is nothing to synthesize.
    # Traces would only tell where in infra/ something was made, for each of its resources.
    app = App(auto_synth=False, stack_traces=False)
    try:
        KeyhopStack(app, Config.from_context(app.node.get_all_context()))
    except (ConfigError, LayerError) as error:
        print(error, file=sys.stderr)
        return 1
    app.synth()
    return 0


if __name__ == "__main__":
    sys.exit(main())
