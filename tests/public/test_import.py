"""The names in `import keyhop`, and the modules that it loads."""

import subprocess
import sys

import keyhop
import pytest

from testing.servers import ROOT

MAX_SECONDS = 0.010
NOT_LOADED = {"boto3", "botocore", "cattrs", "click", "rich", "yaml", "asyncio", "dataclasses"}
PROGRAM = """
import sys, time
before = set(sys.modules)
began = time.perf_counter()
import keyhop
seconds = time.perf_counter() - began
assert dir(keyhop) == sorted([*keyhop.__all__, "__version__"])
print(seconds, *sorted(set(sys.modules) - before))
"""


def in_a_new_process(program: str) -> list[str]:
    command = [sys.executable, "-c", program]
    process = subprocess.run(command, cwd=ROOT / "lambdas", stdout=subprocess.PIPE, text=True)
    assert process.returncode == 0
    return process.stdout.split()


def test_importing_keyhop_takes_at_most_10_ms_and_loads_no_other_package() -> None:
    attempts = [in_a_new_process(PROGRAM) for _ in range(5)]
    assert min(float(seconds) for seconds, *_ in attempts) <= MAX_SECONDS
    for _, *modules in attempts:
        assert not {name.partition(".")[0] for name in modules} & NOT_LOADED
        assert [name for name in modules if name.startswith("keyhop")] == ["keyhop"]


@pytest.mark.parametrize("name", keyhop.__all__)
def test_each_public_name_exists_and_is_documented(name: str) -> None:
    value = getattr(keyhop, name)
    assert value.__doc__ or issubclass(value, keyhop.KeyhopError)
    assert getattr(keyhop, name) is value


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'list_key'"):
        keyhop.list_key  # noqa: B018
    assert not hasattr(keyhop, "_list_keys")


def test_all_errors_are_in_one_module_with_one_base_class() -> None:
    """Only Stopped is not a KeyhopError, because the application requested the stop."""
    classes = [value for value in vars(keyhop.errors).values() if isinstance(value, type)]
    assert len(classes) > 20
    not_errors = {value for value in classes if not issubclass(value, keyhop.KeyhopError)}
    assert not_errors == {keyhop.errors.Stopped}
    assert {value.__module__ for value in classes} == {"keyhop.errors"}
