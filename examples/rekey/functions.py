"""Of functions.yaml: pure, from typed values to typed values; what is kept is not their concern."""


def forward(item):
    """The item under its new key; None would leave it out."""
    _region, account, address = item["PK"]["S"].split("/")
    user, _, host = address.partition("@")
    rest = {name: value for name, value in item.items() if name != "PK"}
    return {**rest, "PK": {"S": f"ACCOUNT#{account}"}, "SK": {"S": f"USER#{host[::-1]}@{user}"}}


def backward(item):
    """All but the source's key, which is put back from where it is kept."""
    return {name: value for name, value in item.items() if name not in ("PK", "SK")}
