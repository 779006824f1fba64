"""Pictures of charts, drawn by Vega in this process."""

from __future__ import annotations

from bert_tf.report.charts import CONFIG, Spec


def svg(chart: Spec) -> str:
    """Returns the picture of a chart as SVG, without what follows a pointer.

    It may stand in the page itself: colours come from there, and what the chart says is text in it.
    """
    import vl_convert  # with its 80 MB of libraries only where a page is made

    still = {**chart, "layer": [part for part in chart["layer"] if "params" not in part]}
    return vl_convert.vegalite_to_svg(still, config=dict(CONFIG), allowed_base_urls=[])
