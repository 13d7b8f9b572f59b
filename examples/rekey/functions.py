"""The functions of functions.yaml. They are pure, and take and return items in DynamoDB JSON."""


def forward(item):
    """Return the item under its new key; None would exclude it."""
    _region, account, address = item["PK"]["S"].split("/")
    user, _, host = address.partition("@")
    rest = {name: value for name, value in item.items() if name != "PK"}
    return {**rest, "PK": {"S": f"ACCOUNT#{account}"}, "SK": {"S": f"USER#{host[::-1]}@{user}"}}


def backward(item):
    """Return the item without the new key; Keyhop restores the old key that the template keeps."""
    return {name: value for name, value in item.items() if name not in ("PK", "SK")}
