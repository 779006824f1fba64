"use strict";
// Charts that follow the pointer and the reader's choice, in the place of the pictures that the page brings.
// Vega evaluates expressions without compiling them (`ast`), so that the page's policy can forbid that.
(() => {
  const config = JSON.parse(document.getElementById("chart-config").textContent);
  const options = {
    ast: true, actions: false, renderer: "svg", config, defaultStyle: false, tooltip: {disableDefaultStyle: true},
  };
  const form = document.querySelector("form.choice");
  const forms = document.querySelectorAll("form.choice"); // one for each group of charts, all with the same choice
  const choice = {};
  const views = new Map(); // by place
  const asked = new Map(); // by place: how often it was drawn, so that what is late does not replace what is newer

  function read(form) {
    choice.axis = form.elements.axis.value;
    choice.log = form.elements.log.checked;
    choice.smoothing = form.elements.smoothing.valueAsNumber / 100;
  }

  function show(form) {
    form.elements.axis.value = choice.axis;
    form.elements.log.checked = choice.log;
    form.elements.smoothing.value = 100 * choice.smoothing;
    form.elements.share.value = `${form.elements.smoothing.value} %`;
  }

  function chosen(spec) {
    const can = spec.usermeta || {};
    if (!can.lines) return spec;
    if (can.epochs && choice.axis === "epoch") spec.encoding.x = {...spec.encoding.x, field: "epoch", title: "epoch"};
    for (const layer of spec.layer) {
      layer.transform = layer.transform.map(smoothed);
      if (choice.log) onLogScale(layer);
      if (!choice.smoothing) layer.encoding.tooltip?.forEach(named);
    }
    return spec;
  }

  function smoothed(step) {
    if (!step.loess) return step;
    return choice.smoothing ? {...step, bandwidth: choice.smoothing} : {calculate: "datum.value", as: "shown"};
  }

  function named(told) {
    told.title = told.title.replace(/^smoothed/, "value");
  }

  function onLogScale(layer) {
    const y = layer.encoding.y;
    y.scale = {type: "log", nice: false};
    layer.transform.push({filter: `datum["${y.field}"] > 0`});
  }

  async function draw(place) {
    const turn = (asked.get(place) || 0) + 1;
    asked.set(place, turn);
    const spec = chosen(JSON.parse(place.nextElementSibling.textContent));
    const sheet = document.createElement("div");
    const width = place.clientWidth;
    const height = Math.round((width * spec.height) / spec.width);
    const {view} = await vegaEmbed(sheet, {...spec, width, height}, options);
    if (asked.get(place) !== turn) return view.finalize();
    views.get(place)?.finalize();
    views.set(place, view);
    place.replaceChildren(sheet);
  }

  // Only what comes into sight is drawn: a page may have dozens of charts.
  const sight = new IntersectionObserver((entries) => {
    for (const {isIntersecting, target} of entries) {
      if (!isIntersecting) continue;
      sight.unobserve(target);
      draw(target);
    }
  }, {rootMargin: "200px"});
  const charts = document.querySelectorAll(".chart");
  charts.forEach((place) => sight.observe(place));

  function again() {
    charts.forEach((place) => {
      sight.unobserve(place);
      sight.observe(place);
    });
  }

  forms.forEach((form) => {
    read(form);
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", () => {
      read(form);
      forms.forEach(show);
      for (const said of document.querySelectorAll(".smooth")) said.hidden = !choice.smoothing;
      again();
    });
  });
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    again();
  });
})();
