"use strict";
// The page is whole without this; it adds a panel with what there is to say of the row under the mouse or the focus, and its arrows.
(() => {
  const steps = document.querySelector(".steps");
  if (!steps) return;
  const panel = document.getElementById("panel");
  const rows = new Map(), arrows = new Map();
  for (const row of steps.querySelectorAll("li")) rows.set(row.id, row);
  const note = (key, line) => { const all = arrows.get(key); if (all) all.push(line); else arrows.set(key, [line]); };
  for (const line of steps.querySelectorAll("line.a")) {
    note(line.dataset.f, line);
    note(line.dataset.t, line);
  }
  let shown = null, lit = [];
  const add = (parent, tag, text, name) => {
    const element = document.createElement(tag);
    element.textContent = text;
    if (name) element.className = name;
    parent.append(element);
    return element;
  };
  const show = row => {
    if (row === shown) return;
    shown = row;
    for (const element of lit) element.classList.remove("on", "marked");
    lit = [];
    panel.replaceChildren();
    panel.hidden = false;
    add(panel, "p", row.querySelector(".op").textContent, "op");
    add(panel, "p", row.querySelector(".more").textContent, "more");
    if (row.dataset.place) add(panel, "p", row.dataset.place, "more");
    if (row.dataset.source) add(panel, "p", row.dataset.source, "source");
    const told = new Set();
    for (const line of arrows.get(row.id) || []) {
      line.classList.add("on");
      lit.push(line);
      const after = line.dataset.t === row.id, other = rows.get(after ? line.dataset.f : line.dataset.t);
      if (!other || told.has(other)) continue;
      told.add(other);
      other.classList.add("marked");
      lit.push(other);
      const p = add(panel, "p", after ? "comes after " : "comes before ");
      add(p, "button", "step " + other.dataset.n, "").onclick = () => other.focus();
      p.append(" (" + line.dataset.why + "): " + other.querySelector(".op").textContent);
    }
  };
  const of = event => event.target.closest && event.target.closest(".chunk li");
  steps.addEventListener("mouseover", event => { const row = of(event); if (row && !steps.contains(document.activeElement)) show(row); });
  steps.addEventListener("click", event => { const row = of(event); if (row) row.focus(); });
  steps.addEventListener("focusin", event => { const row = of(event); if (row) show(row); });
  steps.addEventListener("keydown", event => {
    const by = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key], row = of(event);
    if (!by || !row || event.ctrlKey || event.metaKey || event.altKey) {
      if (event.key === "Escape" && row) row.blur();
      return;
    }
    const all = [...rows.values()], next = all[all.indexOf(row) + by];
    if (next) { event.preventDefault(); next.focus(); }
  });
  // bug.html#s12 opens at step 12.
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (target && rows.has(target.id)) { target.focus(); show(target); }
})();
