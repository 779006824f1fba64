"""What is in the picture of a chart."""

from xml.etree import ElementTree

from bert_tf.extensions.report import charts

SVG = "{http://www.w3.org/2000/svg}"
LINES, AREAS, POINTS = (f"mark-{kind} role-mark" for kind in ("line", "area", "symbol"))


def picture(chart):
    return ElementTree.fromstring(charts.svg(chart))  # noqa: S314  (its own)


def texts(chart):
    return ["".join(element.itertext()) for element in picture(chart).iter(f"{SVG}text")]


def paths(chart, kind):
    """What is drawn as one kind of mark."""
    groups = (group for group in picture(chart).iter(f"{SVG}g") if kind in group.get("class", ""))
    return [path for group in groups for path in group.iter(f"{SVG}path")]


def numbers(path):
    """Coordinates of a path, x and y in turns."""
    return [float(part) for part in path.get("d").replace("M", "").replace("L", ",").replace("Z", "").split(",")]


def following(chart):
    """The part that follows the pointer."""
    (part,) = (layer for layer in chart["layer"] if "params" in layer)
    return part


def told(chart):
    return [row["title"] for row in following(chart)["encoding"]["tooltip"]]
