"""Check update expressions: repeatable ones pass, and others are refused with their clause."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.each.expression import Update
from keyhop.each.template import Variables, template_json
from keyhop.errors import CannotStart

SPACE = KeySpace((KeyAttribute("pk", "S"),), KeyAttribute("sk", "S"))


def update(expression: str, names=None, **values) -> Update:
    templates = template_json({f":{name}": value for name, value in values.items()})
    variables = Variables(SPACE.partition[0], "run-7", "2026-11-22T15:04:40+00:00")
    return Update.of(expression, templates, names or {}, SPACE, variables)


def resolved(update_: Update) -> str:
    """Return the expression with names instead of their placeholders."""
    text = update_.expression
    for placeholder in sorted(update_.names, reverse=True):
        text = text.replace(placeholder, update_.names[placeholder])
    return text


SET = {"SS": ["x"]}
FINE = {
    "SET plan = :a": "SET plan = :a",
    "set plan=:a": "SET plan = :a",
    "SET a.b = :a, c = :b": "SET a.b = :a, c = :b",
    "SET a = if_not_exists(a, :a)": None,
    "SET a.b = if_not_exists(a.b, :a)": None,
    "SET a = b": None,
    "SET a = b + :a, c = :b - b": None,
    "SET a = pk": None,
    "SET a = if_not_exists(b, c)": None,
    "SET a = list_append(b, :a)": None,
    "SET a[0].b = :a": None,
    "REMOVE a, b.c[1].d": None,
    "SET a = :a REMOVE b": None,
    "SET a = if_not_exists(a, if_not_exists(b, :a))": None,
}


@pytest.mark.parametrize("expression", FINE)
def test_a_repeatable_update_passes(expression: str) -> None:
    values = {name: 1 for name in "ab" if f":{name}" in expression}
    result = update(expression, **values)
    assert resolved(result) == (FINE[expression] or resolved(result))
    assert resolved(result).upper().replace(" ", "") == expression.upper().replace(" ", "")


def test_sets_may_be_added_to_and_deleted_from() -> None:
    assert (
        resolved(update("ADD tags :s DELETE old :o", s=SET, o=SET)) == "ADD tags :s DELETE old :o"
    )


def test_members_of_a_set_may_vary() -> None:
    assert resolved(update("ADD tags :s", s={"SS": ["${key}"]})) == "ADD tags :s"
    assert resolved(update("DELETE tags :s", s="${first.tags}")) == "DELETE tags :s"
    with pytest.raises(CannotStart, match="would add again"):
        update("ADD n :a", a="${first.n}")


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("DELETE l :a", "DELETE l: only members of a set"),
        ("SET n = n + :a", "SET n is made of n"),
        ("SET n = n + :a", "SET a value that does not depend on it"),
        ("SET n = :a + n", "SET n is made of n"),
        ("SET n = if_not_exists(n, :a) + :b", "SET n is made of n"),
        ("SET n = :a - if_not_exists(n, :b)", "SET n is made of n"),
        ("SET l = list_append(l, :a)", "SET l is made of l"),
        ("SET l = list_append(if_not_exists(l, :a), :b)", "SET l is made of l"),
        ("SET l = list_append(:a, l)", "SET l is made of l"),
        ("SET a = b, b = a", "which SET b writes"),
        ("SET a = b REMOVE b", "which REMOVE b writes"),
        ("SET a = if_not_exists(b, :a) REMOVE b", "which REMOVE b writes"),
        ("SET a = b.c, b = :a", "which SET b writes"),
        ("SET a.b = a", "which SET a.b writes"),
        ("SET a = if_not_exists(a.b, :a)", "SET a is made of a.b"),
        ("ADD n :a", "ADD n would add again"),
        ("REMOVE l[0]", "REMOVE l[0]: if a page were repeated"),
        ("SET l[3] = :a", "SET l[3]: if a page were repeated"),
        ("SET a = :a, a.b = :b", "write the same"),
        ("SET pk = :a", "SET pk: it is a key attribute of the table"),
        ("REMOVE sk", "REMOVE sk: it is a key attribute of the table"),
        ("SET keyhop = :a", "marks the sentinels"),
    ],
)
def test_an_unrepeatable_update_is_refused_by_its_clause(expression: str, message: str) -> None:
    with pytest.raises(CannotStart) as error:
        update(expression, **{name: 1 for name in "ab" if f":{name}" in expression})
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("expression", "names", "message"),
    [
        ("", {}, "empty"),
        ("  ", {}, "empty"),
        ("SET", {}, "ends too early"),
        ("SET a = :b", {}, ":b, but no value"),
        ("SET a = b", {}, "does not use :a"),
        ("SET #x = :a", {}, "#x, but no name"),
        ("SET x = :a", {"#x": "y"}, "does not use #x"),
        ("SET #x = :a", {"#x": 1}, "The value of #x must be a name, not 1"),
        ("SET #x = :a", {"#x": ""}, "The value of #x must be a name"),
        ("SET #pk = :a", {"#pk": "pk"}, "key attribute of the table"),
        ("SET #kh_0 = :a", {"#kh_0": "x"}, "reserved for Keyhop"),
        ("SET a = :a SET b = :a", {}, "two clauses"),
        ("PUT a = :a", {}, "are expected"),
        ("SET a = size(:a)", {}, "no function"),
        ("SET a := :a", {}, "wrong at"),
        ("SET a = :a; DROP", {}, "wrong at"),
        ("SET a-b = :a", {}, "'=' is expected"),
        ("SET a[x] = :a", {}, "a number is expected"),
        ("DELETE a b", {}, "a value is expected"),
    ],
)
def test_an_invalid_update_is_refused(expression: str, names, message: str) -> None:
    with pytest.raises(CannotStart) as error:
        update(expression, names, a=1)
    assert message in str(error.value)


def test_every_name_has_a_placeholder_so_reserved_words_are_accepted() -> None:
    result = update("SET name = :a, #n.status = :a REMOVE name2", {"#n": "n.dots"}, a=1)
    assert set(result.names.values()) == {"name", "n.dots", "status", "name2"}
    assert "name" not in result.expression
    assert resolved(result) == "SET name = :a, n.dots.status = :a REMOVE name2"


def test_values_have_variables_as_templates_do() -> None:
    result = update("SET a = :a, b = :b, c = :c", a="${key}!", b="${now}", c=3)
    assert result.values({"pk": {"S": "k"}}) == {
        ":a": {"S": "k!"},
        ":b": {"S": "2026-11-22T15:04:40+00:00"},
        ":c": {"N": "3"},
    }


NAMES = st.sampled_from("abcd")
OPERANDS = st.recursive(
    NAMES | st.just(":v"),
    lambda inner: st.builds("if_not_exists({}, {})".format, NAMES, inner),
    max_leaves=3,
)
SETS = st.lists(
    st.tuples(NAMES, OPERANDS, st.sampled_from(["", " + :v", " + a", " - b"])),
    min_size=1,
    max_size=3,
)


@given(SETS, st.lists(NAMES, max_size=2, unique=True), st.dictionaries(NAMES, st.integers(0, 9)))
def test_an_accepted_update_has_the_same_result_when_repeated(sets, removed, item) -> None:
    """The model of the test reads all operands before it writes anything."""
    actions = ", ".join(f"{target} = {operand}{more}" for target, operand, more in sets)
    expression = f"SET {actions}" + (f" REMOVE {', '.join(removed)}" if removed else "")
    try:
        update(expression, **({"v": 7} if ":v" in expression else {}))
    except CannotStart:
        return

    def value(text: str, old: dict) -> int | None:
        text = text.strip()
        if text.startswith("if_not_exists("):
            path, default = text[len("if_not_exists(") : -1].split(",", 1)
            return old[path] if path in old else value(default, old)
        return 7 if text == ":v" else old.get(text)

    def updated(old: dict) -> dict:
        new = dict(old)
        for target, operand, more in sets:
            first = value(operand, old)
            addend = value(more[3:], old) if more else 0
            if first is None or addend is None:
                return old  # the service refuses the update as a whole
            new[target] = first + addend * (-1 if more.startswith(" -") else 1)
        return {name: content for name, content in new.items() if name not in removed}

    once = updated(item)
    assert updated(once) == once
