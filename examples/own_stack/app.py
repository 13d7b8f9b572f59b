"""An application's own stack, which adds Keyhop's constructs to its table and its topic.

make dist && pip install 'dist/keyhop-0.1.0-py3-none-any.whl[cdk]'
cd examples/own_stack && cdk deploy
keyhop keys TABLE --remote --stack Shop   (TABLE is the name that CloudFormation gave the table)
"""

from aws_cdk import App, Stack, Tags
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_sns as sns
from constructs import Construct
from keyhop_cdk import KeyEnumeration, KeyIndex, keyhop_table


class Shop(Stack):
    """A shop's table and topic, with lists of the table's keys and a key index."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        orders = dynamodb.TableV2(
            self,
            "Orders",
            partition_key=dynamodb.Attribute(name="customer", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="order", type=dynamodb.AttributeType.STRING),
        )
        on_call = sns.Topic(self, "OnCall")
        keys = KeyEnumeration(
            self,
            "Keys",
            tables=[keyhop_table(orders, key_index=True, key_attributes=["customer", "order"])],
            alarm_topic=on_call,
            log_retention_days=14,
        )
        KeyIndex(self, "KeyIndex", keys)
        Tags.of(keys).add("team", "orders")


app = App()
Shop(app, "Shop")
app.synth()
