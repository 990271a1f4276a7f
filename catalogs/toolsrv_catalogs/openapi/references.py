"""References of OpenAPI documents: followed within the source, never out of it.

A reference may lead to another file of the same folder or archive, which who opened the source reads;
no path outside is opened. Cycles and tangles end with a ``ReferenceFault``. Stands on
``referencing``, the JSON Schema project's resolver. Knows nothing about OpenAPI's objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, unquote, urljoin, urlsplit

from referencing import Registry, Resource, Specification
from referencing.exceptions import Unresolvable

Load = Callable[[PurePosixPath], Any]
"""Returns the parsed value of another file of the source; raises KeyError when there is none."""

Value = TypeVar("Value")

STEPS_LIMIT = 5_000
"""References and schemas looked at for one operation."""
_CHAIN_LIMIT = 32
_BASE = "file:///"


class ReferenceFault(Exception):  # noqa: N818 - a fault of the document, told to its author
    """A reference that cannot be followed; the message says which and why."""


class Node(NamedTuple):
    """A value in a document, and the resolver for the references in it."""

    value: Any
    resolver: Any


def node_at(value: Any, resolver: Any) -> Node:
    """Return a value as a node; one that is a node already keeps its resolver."""
    return value if isinstance(value, Node) else Node(value, resolver)


def split_reference(node: Node) -> tuple[Node, Node | None]:
    """Return a reference and what stands beside it, each for itself; None for nothing.

    Beside a reference of a schema or a path item stand parts that add to what it leads to, with
    references of their own, relative to where they stand.
    """
    value = node.value
    if not isinstance(value, dict) or not isinstance(value.get("$ref"), str) or len(value) == 1:
        return node, None
    beside = {key: one for key, one in value.items() if key != "$ref"}
    return Node({"$ref": value["$ref"]}, node.resolver), Node(beside, node.resolver)


def all_of(node: Node) -> Iterator[tuple[Node, bool]]:
    """Yield the schemas under ``allOf``, and whether the schema inherits from each.

    It does not from those that ``variants`` puts beside each other.
    """
    for one in _listed(node, "allOf"):
        yield (one, False) if isinstance(one, Node) else (Node(one, node.resolver), True)


def variants(node: Node, key: str, *, inherited: bool = False) -> Iterator[Node]:
    """Yield the schemas that a schema lists under ``anyOf`` or ``oneOf``.

    Each holds the discriminator's property to the values that its ``mapping`` gives it. Where a
    mapping alone says which schemas there are, they stand for ``anyOf``, but not where another
    schema inherits from this one: that is one of them, and has nothing of the others. Made one by
    one: there may be a thousand, and who keeps little of a schema asks for the first ones.
    """
    value, resolver = node
    found = _listed(node, key)
    nodes = (node_at(one, resolver) for one in found)
    told = value.get("discriminator")
    mapping = told.get("mapping") if isinstance(told, dict) else None
    if not isinstance(told, dict) or not isinstance(mapping, dict):
        yield from nodes
        return
    if key == "anyOf" and not found and "oneOf" not in value and not inherited:
        targets = dict.fromkeys(map(str, mapping.values()))
        nodes = (Node({"$ref": _schema_reference(one)}, resolver) for one in targets)
    by_target = _by_target(_Same(mapping))
    for one in nodes:
        yield _tagged(one, told.get("propertyName"), by_target)


def _listed(node: Node, key: str) -> list[Any]:
    listed = node.value.get(key)
    return listed if isinstance(listed, list) else []


class _Same:
    """A mapping that is equal to itself alone, as a key."""

    def __init__(self, mapping: dict[Any, Any]) -> None:
        self.mapping = mapping

    def __hash__(self) -> int:
        return id(self.mapping)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.mapping is self.mapping


@lru_cache(maxsize=256)
def _by_target(same: _Same) -> dict[str, list[str]]:
    """Return the values of a discriminator's mapping by the names of the schemas that they stand for."""
    found: dict[str, list[str]] = {}
    for name, target in same.mapping.items():
        found.setdefault(str(target).rsplit("/", 1)[-1], []).append(str(name))
    return found


def _schema_reference(target: str) -> str:
    return target if "/" in target or "#" in target else f"#/components/schemas/{target}"


def _tagged(node: Node, name: Any, by_target: dict[str, list[str]]) -> Node:
    target = node.value.get("$ref") if isinstance(node.value, dict) else None
    values = by_target.get(target.rsplit("/", 1)[-1]) if isinstance(target, str) else None
    if not values or not isinstance(name, str):
        return node
    tag = {"properties": {name: {"enum": values}}}
    return Node({"allOf": [node, Node(tag, node.resolver)]}, node.resolver)


class _Marks(NamedTuple):
    """Schemas of a document by their ``$id`` and by their ``$anchor``.

    ``several`` are dynamic anchors that stand in more than one place.
    """

    ids: dict[str, Any]
    anchors: dict[str, Any]
    several: set[str]


def _marks(document: Any) -> _Marks:
    found = _Marks({}, {}, set())
    waiting, seen = [document], set[int]()
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list):
            if id(value) in seen:
                continue
            seen.add(id(value))
            waiting.extend(value.values() if isinstance(value, dict) else value)
        if isinstance(value, dict):
            if isinstance(name := value.get("$id"), str) and name.rstrip("#"):
                found.ids.setdefault(name.rstrip("#"), value)
            for key in ("$anchor", "$dynamicAnchor"):
                if isinstance(name := value.get(key), str):
                    known = found.anchors.setdefault(name, value)
                    if known is not value and key == "$dynamicAnchor":
                        found.several.add(name)
    return found


EXAMPLES_LIMIT = 32 * 2**20
"""Characters of the example responses of one document: each API keeps its own copy."""


class References:
    """The references of one document and of the files that it leads to."""

    def __init__(self, document: Any, path: PurePosixPath, load: Load) -> None:
        self._load = load
        self._steps = 0
        self.open: set[int] = set()
        """Schemas whose variants are being looked at: a variant may lead back to them."""
        self.example_room = EXAMPLES_LIMIT
        """Characters of example responses that are still kept."""
        self.missed: list[str] = []
        """Faults of parts that were left out, which cost nothing more."""
        self._marks: dict[int, tuple[Any, _Marks]] = {}
        base = _BASE + quote(str(path))
        resource = Specification.OPAQUE.create_resource(document)
        # The type checker does not see through the library's own class decorator.
        registry: Registry[Any] = Registry(retrieve=self._retrieve)  # type: ignore[call-arg]
        self._registry = registry.with_resource(base, resource)
        self.root = Node(document, self._registry.resolver(base))
        self._faults = 0
        # One resolver per base address, so that a reference is one key wherever it stands.
        self._resolvers: dict[str, Any] = {base: self.root.resolver}
        self._bases: dict[int, str] = {id(self.root.resolver): base}
        self._found: dict[tuple[int, str], Node] = {}
        self._made: dict[tuple[str, int, str], Any] = {}
        # By address the schema that has it: of two with one address the first.
        self._values: dict[str, Any] = {}
        # By the resolver of an embedded schema the one around it: many mean that.
        self._around: dict[int, Any] = {}

    def renew(self) -> None:
        """Start counting steps anew: before each operation."""
        self._steps = 0

    def step(self) -> None:
        """Count a step. Raises ReferenceFault when there were too many."""
        self._steps += 1
        if self._steps > STEPS_LIMIT:
            raise ReferenceFault(f"it takes more than {STEPS_LIMIT} references and schemas")

    def miss(self, fault: ReferenceFault) -> None:
        """Note a part that is left out."""
        self._faults += 1
        if str(fault) not in self.missed:
            self.missed.append(str(fault))

    def once(self, what: str, node: Node, make: Callable[[], Value]) -> Value:
        """Return what ``make`` makes of a node; of a reference alone it is made once.

        Large documents lead to the same few schemas from every operation. What something was
        missed in is made again, so that each operation tells it. ``what`` names the kind.
        """
        key = self._key(what, node)
        if key is None:
            return make()
        if key in self._made:
            made: Value = self._made[key]
            return made
        before = self._faults
        made = make()
        if self._faults == before:
            self._made[key] = made
        return made

    def _key(self, what: str, node: Node) -> tuple[str, int, str] | None:
        value = node.value
        if not isinstance(value, dict) or len(value) != 1 or id(node.resolver) not in self._bases:
            return None
        target = value.get("$ref")
        return (what, id(node.resolver), target) if isinstance(target, str) else None

    def follow(self, node: Node) -> Node:
        """Return what a node stands for: itself, or what its ``$ref`` leads to.

        What stands beside ``$ref`` goes over what it leads to. Raises ReferenceFault.
        """
        return self._followed(node, self.step)

    def peek(self, node: Node) -> Node:
        """Return what ``follow`` does without counting steps: for walks that are bounded anyway."""
        return self._followed(node, lambda: None)

    def part(self, node: Node) -> Node:
        """Return what ``peek`` does; that a reference leads to nothing is noted too."""
        try:
            return self.peek(node)
        except ReferenceFault as fault:
            self.miss(fault)
            raise

    def _followed(self, node: Node, step: Callable[[], None]) -> Node:
        beside: dict[str, Any] = {}
        for _ in range(_CHAIN_LIMIT):
            step()
            key, target = _reference(node.value)
            if not key:
                node = self._in_own_base(node)
                value = node.value | beside if beside and isinstance(node.value, dict) else None
                return node if value is None else Node(value, node.resolver)
            beside = {k: v for k, v in node.value.items() if k != key} | beside
            node = self._lookup(target, node.resolver)
        raise ReferenceFault("a reference leads round in a circle")

    def _in_own_base(self, node: Node) -> Node:
        """Return a node whose references are relative to the ``$id`` that its value has."""
        name = node.value.get("$id") if isinstance(node.value, dict) else None
        if not isinstance(name, str) or not name.rstrip("#") or "#" in name.rstrip("#"):
            return node  # a fragment is no base
        base = self._bases.get(id(node.resolver), "")
        try:
            return self._resource(urljoin(base, name).rstrip("#"), node)
        except ValueError:  # it is no address
            return node

    def _resource(self, uri: str, node: Node) -> Node:
        """Return a schema with an address of its own, and the resolver for that."""
        known = self._resolvers.get(uri)
        if known is not None and self._values.get(uri, node.value) is not node.value:
            return node  # another schema has this address already
        if known is None:
            self._values[uri] = node.value
            resource = Specification.OPAQUE.create_resource(node.value)
            known = self._registry.with_resource(uri, resource).resolver(uri)
            self._resolvers[uri] = known
            self._bases[id(known)] = uri
            self._around[id(known)] = node.resolver
        return Node(node.value, known)

    def _lookup(self, target: str, resolver: Any) -> Node:
        key = (id(resolver), target)
        found = self._found.get(key)
        if found is None:
            found = self._looked_up(target, resolver)
            if id(resolver) in self._bases:  # only those stay, and keep their address
                found = self._found[key] = self._settled(target, resolver, found)
        return found

    def _settled(self, target: str, resolver: Any, found: Node) -> Node:
        """Return what was found with the one resolver of its base address."""
        uri = target.partition("#")[0]
        base = urljoin(self._bases[id(resolver)], uri) if uri else self._bases[id(resolver)]
        known = self._resolvers.setdefault(base, found.resolver)
        self._bases[id(known)] = base
        return Node(found.value, known)

    def _looked_up(self, target: str, resolver: Any) -> Node:
        if (found := self._embedded(target, resolver)) is not None:
            return found
        fault = "lies outside; nothing is fetched"
        if not _elsewhere(target):
            fault = "leads to nothing"
            with suppress(Unresolvable, ValueError, TypeError, LookupError, AttributeError):
                found = resolver.lookup(target)
                return Node(found.contents, found.resolver)
        if (around := self._around.get(id(resolver))) is not None:
            return self._lookup(target, around)
        raise ReferenceFault(f"{target[:120]!r} {fault}")

    def _embedded(self, target: str, resolver: Any) -> Node | None:
        """Return what an ``$id`` or ``$anchor`` within a document names; None where none does."""
        uri, _, fragment = target.partition("#")
        if not uri and (not fragment or fragment.startswith("/")):
            return None
        if uri and (named := self._named(uri, resolver)) is not None:
            return self._within(fragment, named)
        if not fragment or fragment.startswith("/") or _elsewhere(target):
            return None
        try:
            whole = resolver.lookup(uri or "#")
        except (Unresolvable, ValueError, TypeError, LookupError, AttributeError):
            return None
        value = self._anchored(fragment, whole.contents, self.root.value)
        return None if value is None else Node(value, whole.resolver)

    def _named(self, uri: str, resolver: Any) -> Node | None:
        """Return the document, or the schema in it, whose address this is."""
        try:
            whole = urljoin(self._bases.get(id(resolver), ""), uri)
        except ValueError:
            return None
        own = self.root.value.get("$self") if isinstance(self.root.value, dict) else None
        if isinstance(own, str) and own.rstrip("#") in (uri, whole):
            return self.root
        ids = self._marked(self.root.value).ids
        value = ids.get(uri, ids.get(whole))
        return None if value is None else self._resource(whole, Node(value, self.root.resolver))

    def _anchored(self, name: str, *documents: Any) -> Any:
        """Return what an anchor names in the first document that has it; None where none has.

        Raises ReferenceFault for one that stands for several, so that its place decides.
        """
        for marks in map(self._marked, documents):
            if name in marks.several:
                raise ReferenceFault(f"'#{name[:80]}' is another schema in another place")
            if (value := marks.anchors.get(name)) is not None:
                return value
        return None

    def _within(self, fragment: str, node: Node) -> Node | None:
        if not fragment:
            return node
        if not fragment.startswith("/"):
            value = self._anchored(fragment, node.value)
            return None if value is None else Node(value, node.resolver)
        try:
            found = node.resolver.lookup(f"#{fragment}")
        except (Unresolvable, ValueError, TypeError, LookupError, AttributeError):
            return None
        return Node(found.contents, found.resolver)

    def _marked(self, document: Any) -> _Marks:
        """Return the ``$id`` and ``$anchor`` in a document; read once."""
        kept = self._marks.get(id(document))
        if kept is None:  # the document is kept too, so that its address stays its own
            kept = self._marks[id(document)] = (document, _marks(document))
        return kept[1]

    def _retrieve(self, uri: str) -> Resource[Any]:
        """Return another file of the source; any exception means that there is none."""
        parts = urlsplit(uri)
        if not uri.startswith(_BASE) or parts.netloc:
            raise KeyError(uri)
        document = self._load(PurePosixPath(unquote(parts.path).lstrip("/")))
        return Specification.OPAQUE.create_resource(document)


def _reference(value: Any) -> tuple[str, str]:
    """Return the keyword of a reference and what it refers to, both empty where there is none."""
    for key in ("$ref", "$dynamicRef") if isinstance(value, dict) else ():
        if isinstance(target := value.get(key), str):
            return key, target
    return "", ""


def _elsewhere(target: str) -> str:
    """Return the scheme or host that a reference names, ``""`` for a relative one."""
    try:
        parts = urlsplit(target)
    except ValueError:
        return target
    return parts.scheme or parts.netloc
