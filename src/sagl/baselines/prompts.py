"""Prompts: sentences around the name of a class, for encoders that read text."""

from __future__ import annotations

from collections.abc import Sequence

# A name stands where {} is. Several wordings are averaged, so none matters much; what
# helps is to say what kind of thing the names are.
TEMPLATES: dict[str, tuple[str, ...]] = {
    "generic": (
        "a photo of a {}.",
        "a picture of the {}.",
        "a photo of one {}, seen from close by.",
        "a photo of a {} far away.",
        "a sharp photo of the {}.",
        "a blurred picture of a {}.",
        "a dark photo of a {}.",
        "a bright photo of the {}.",
        "a photo of a small {}.",
        "a photo of a large {}.",
        "a photo that shows a part of the {}.",
        "this is a {}.",
    ),
    "names": ("{}",),
    "pets": (
        "a photo of a {}, a breed of cat or dog.",
        "a photo of my pet, a {}.",
        "the face of a {}.",
        "a {} resting at home.",
        "a {} playing outside.",
    ),
    "flowers": (
        "a photo of a {}, a kind of flower.",
        "a {} in bloom.",
        "the petals of a {} from close by.",
        "a {} growing in a garden.",
    ),
    "food": (
        "a photo of {}, a dish.",
        "a plate of {}.",
        "{} on a table in a restaurant.",
        "home-made {}.",
    ),
    "satellite": (
        "a satellite image of {}.",
        "an aerial photo of {}.",
        "{} seen from high above.",
        "land seen from space: {}.",
    ),
    "scenes": (
        "a photo of a {}.",
        "a photo taken in a {}.",
        "a view of the {}.",
        "this place is a {}.",
    ),
    "textures": (
        "a photo of a {} texture.",
        "a surface with a {} pattern.",
        "{} material from close by.",
    ),
    "actions": (
        "a photo of a person who is {}.",
        "people {}.",
        "somebody is busy {}.",
    ),
    "driving": (
        "a photo of the road from a moving car: {}.",
        "the driver of a car sees {}.",
        "a street with {}.",
    ),
    "questions": (
        "{}",
        "a question about {}.",
        "I need help: {}.",
        "a customer asks about {}.",
    ),
}

Templates = str | Sequence[str]


def fill(templates: Templates, names: Sequence[str]) -> list[list[str]]:
    """The prompts of each class.

    >>> fill(["a {}.", "my {}."], ["house_cat", "dog"])
    [['a house cat.', 'my house cat.'], ['a dog.', 'my dog.']]
    """
    chosen = _chosen(templates)
    readable = [" ".join(name.replace("_", " ").split()) for name in names]
    return [[t.replace("{}", name) for t in chosen] for name in readable]


def check_class_names(names: Sequence[str] | None, n_clusters: int) -> list[str]:
    """The names as a list, if there is one for each class."""
    if names is None:
        raise ValueError(
            "class_names is missing: give the name of every class, in order"
        )
    if isinstance(names, str) or not all(
        isinstance(n, str) and n.strip() for n in names
    ):
        raise ValueError(f"class_names must be a list of names; got {names!r}")
    if len(names) != n_clusters:
        raise ValueError(
            f"{n_clusters} clusters need as many class_names; got {len(names)}"
        )
    return list(names)


def _chosen(templates: Templates) -> Sequence[str]:
    if isinstance(templates, str):
        if templates not in TEMPLATES:
            raise ValueError(
                f"no templates {templates!r}; there are {', '.join(TEMPLATES)}, or "
                "give a list of your own such as ['a photo of a {}.']"
            )
        return TEMPLATES[templates]
    if not templates:
        raise ValueError("templates is empty; give at least one, such as ['{}']")
    for template in templates:
        if "{}" not in template:
            raise ValueError(f"template {template!r} has no {{}} where the name goes")
    return templates
