
"use strict";
// Called again where another state of the run has taken its place: the selected node stays.
let selectedNode = "";
function mountTree() {
  const tree = document.getElementById("tree");
  const canvas = document.getElementById("canvas");
  const panel = document.getElementById("panel");
  const nodes = [...tree.querySelectorAll(".node")];
  const byId = new Map(nodes.map((node) => [node.id.slice(1), node]));
  const below = new Map(nodes.map((node) => [node, []]));
  const levels = new Map();
  for (const node of nodes) {
    const parent = byId.get(node.dataset.parent);
    if (parent) below.get(parent).push(node);
    const level = node.getAttribute("aria-level");
    if (!levels.has(level)) levels.set(level, []);
    levels.get(level).push(node);
  }
  const left = (node) => node.transform.baseVal[0].matrix.e;
  for (const row of levels.values()) row.sort((a, b) => left(a) - left(b));
  let current = null;
  let shown = null;
  document.body.classList.add("live");

  function select(node, focus) {
    if (!node) return;
    if (current) {
      current.setAttribute("aria-selected", "false");
      current.tabIndex = -1;
    }
    current = node;
    selectedNode = node.id.slice(1);
    node.setAttribute("aria-selected", "true");
    node.tabIndex = 0;
    if (shown) shown.classList.remove("open");
    shown = document.getElementById("d" + node.id.slice(1));
    shown.classList.add("open");
    panel.scrollTop = 0;
    if (focus) {
      node.focus({ preventScroll: true });
      node.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  }

  function beside(step) {
    const row = levels.get(current.getAttribute("aria-level"));
    return row[row.indexOf(current) + step];
  }

  const answer = nodes.findLast((node) => node.classList.contains("winning")) || nodes[nodes.length - 1];
  const moves = {
    ArrowDown: () => below.get(current)[0],
    ArrowUp: () => byId.get(current.dataset.parent),
    ArrowLeft: () => beside(-1),
    ArrowRight: () => beside(1),
    Home: () => nodes[0],
    End: () => answer,
  };
  tree.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      panel.focus();
    } else if (Object.hasOwn(moves, event.key)) {
      event.preventDefault();
      select(moves[event.key](), true);
    }
  });
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") select(current, true);
  });
  tree.addEventListener("click", (event) => select(event.target.closest(".node"), true));

  const width = tree.viewBox.baseVal.width;
  const height = tree.viewBox.baseVal.height;
  let scale = 1;
  function zoom(to) {
    scale = Math.min(3, Math.max(0.05, to));
    tree.setAttribute("width", width * scale);
    tree.setAttribute("height", height * scale);
    if (current) current.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  const click = (id, work) => document.getElementById(id).addEventListener("click", work);
  click("more", () => zoom(scale * 1.25));
  click("less", () => zoom(scale / 1.25));
  const fit = () => Math.min(1, (canvas.clientWidth - 10) / width, (canvas.clientHeight - 10) / height);
  click("fit", () => zoom(fit()));
  click("path", (event) => {
    const only = tree.classList.toggle("only");
    event.currentTarget.setAttribute("aria-pressed", String(only));
  });
  zoom(Math.max(0.8, fit()));
  const before = byId.get(selectedNode);
  select(before || nodes[0], false);
  current.scrollIntoView({ block: "nearest", inline: "center" });
}
