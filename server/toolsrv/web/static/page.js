"use strict";
// All pages work without this: it shows that work is under way, and follows what is live.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // mountTree scrolls its node into view; the page itself stays where it is.
  function mount() {
    if (!document.getElementById("tree")) return;
    const [left, top] = [scrollX, scrollY];
    mountTree();
    scrollTo(left, top);
  }

  function say(form, text) {
    const place = document.createElement("span");
    place.className = "working";
    place.setAttribute("role", "status");
    (form.querySelector(".buttons, p:last-of-type, .line-up") || form).append(place);
    place.textContent = text;
  }

  // The server refuses a file that is too large as well, but only once it is there.
  all("input[data-most-bytes]").forEach((input) =>
    input.addEventListener("change", () => {
      const most = Number(input.dataset.mostBytes);
      const large = [...input.files].find((file) => file.size > most);
      input.setCustomValidity(
        large ? `${large.name} has ${large.size.toLocaleString("en")} bytes, more than a call may send.` : ""
      );
      input.reportValidity();
    })
  );

  // A disabled button would not be sent, so it is disabled after the form is.
  addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.working) say(form, form.dataset.working);
    setTimeout(() => all("button", form).forEach((one) => (one.disabled = true)));
  });
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    all(".working").forEach((one) => one.remove());
    all("form button").forEach((one) => (one.disabled = false));
  });

  function take(root, parts) {
    for (const [name, html] of Object.entries(parts)) {
      const place = root.querySelector(`[data-part="${name}"]`);
      if (!place) continue;
      const focused = place.contains(document.activeElement) && document.activeElement.closest(".node");
      place.replaceChildren(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
      if (name !== "tree") continue;
      mount();
      if (focused) place.querySelector('.node[tabindex="0"]')?.focus({ preventScroll: true });
    }
  }

  function follow(root) {
    const lost = document.createElement("p");
    lost.className = "notice bad";
    lost.setAttribute("role", "status");
    const source = new EventSource(root.dataset.events);
    const heard = (event) => {
      lost.remove();
      take(root, JSON.parse(event.data));
    };
    source.addEventListener("state", heard);
    source.addEventListener("end", (event) => {
      source.close();
      heard(event);
      all("[data-while-live]", root).forEach((one) => one.remove());
    });
    source.addEventListener("error", () => {
      lost.textContent =
        source.readyState === EventSource.CLOSED
          ? "The server does not answer any more: load the page again."
          : "The connection broke; trying again…";
      root.prepend(lost);
    });
    addEventListener("pagehide", () => source.close());
  }

  mount();
  all("[data-events]").forEach(follow);
  document.querySelector("[data-focus]")?.focus();
})();
