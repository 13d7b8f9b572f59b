"""The CDK app: settings -> config -> one stack."""

import os
import sys

from aws_cdk import App

from infra import ConfigError, LayerError, limits
from infra.config import Config, settings_of
from infra.machines import REGION
from infra.stack import KeyhopStack


def main() -> int:
    """Synthesize; what the user can mend is one sentence and exit code 1."""
    # Not by itself at exit: after an error there is nothing to synthesize.
    # Traces would only tell where in infra/ something was made, for each of its resources.
    app = App(auto_synth=False, stack_traces=False)
    try:
        config = Config.from_context(settings_of(app.node.get_all_context()))
        # What the CDK's command says of the credentials, if there are any.
        account, region = map(os.environ.get, ("CDK_DEFAULT_ACCOUNT", "CDK_DEFAULT_REGION"))
        limits.check_places(config.all_tables, account, region)
        if region:
            app.node.set_context(REGION, region)
        KeyhopStack(app, config)
        template = app.synth().get_stack_by_name(config.stack_name).template
        limits.check_template(template, len(config.tables))
    except (ConfigError, LayerError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
