"""Renders charts to pictures with Vega in this process."""

from __future__ import annotations

from bert_tf.report.charts import CONFIG, Spec


def svg(chart: Spec) -> str:
    """Renders a chart as SVG without its tooltip layers.

    It is made for embedding: colours come from the page, and text stays text.
    """
    import vl_convert  # 80 MB of libraries, loaded only to make a page

    still = {**chart, "layer": [part for part in chart["layer"] if "params" not in part]}
    return vl_convert.vegalite_to_svg(still, config=dict(CONFIG), allowed_base_urls=[])
