"""What `keyhop keys` imports before its first request: most of how long it takes to begin."""

import subprocess
import sys

from testing.servers import LOCAL_CREDENTIALS, ROOT

BEGIN = f"""
import sys
import keyhop.cli.main
import keyhop.cli.keys_actions
from keyhop.dynamodb.client import Endpoint, connect
connect(Endpoint(url="http://127.0.0.1:9", region={LOCAL_CREDENTIALS["region_name"]!r}))
print(*sys.modules)
"""
LATER = {
    "asyncio": "of no use to a command",
    "attr": "cattrs's",
    "boto3": "S3's transfers; botocore is enough for DynamoDB",
    "cattrs": "for what is written down",
    "rich": "for progress in a terminal",
    "s3transfer": "boto3's",
}


def test_what_the_first_request_does_not_need_is_imported_later() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", BEGIN], cwd=ROOT / "lambdas", stdout=subprocess.PIPE, text=True
    )
    assert ended.returncode == 0
    imported = {name.partition(".")[0] for name in ended.stdout.split()}
    assert "botocore" in imported
    assert not imported & set(LATER)
