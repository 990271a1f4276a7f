
"use strict";
// MCP Apps (2026-01-26): JSON-RPC with the host over postMessage. The page of a run is read as a
// resource, again and again while the run has not ended, and shown in place of this one.
(() => {
  const PAUSE_MS = 1000;
  const waiting = new Map();
  let last = 0;
  let able = {};
  let following = "";
  let shown = "";
  let ended = false;
  const post = (message) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  const note = (method, params = {}) => post({ method, params });
  const ask = (method, params) =>
    new Promise((done, failed) => {
      waiting.set(++last, [done, failed]);
      post({ id: last, method, params });
    });
  const pause = () => new Promise((done) => setTimeout(done, PAUSE_MS));
  const say = (text) => {
    document.getElementById("message").textContent = text;
    resized();
  };
  function resized() {
    const { scrollWidth: width, scrollHeight: height } = document.documentElement;
    note("ui/notifications/size-changed", { width, height });
  }

  function show(text) {
    if (text === shown) return "live";
    shown = text;
    const found = new DOMParser().parseFromString(text, "text/html");
    const [header, main] = [found.querySelector("header"), found.querySelector("main")];
    if (!header || !main) return "ended";
    const run = document.getElementById("run");
    const focused = document.activeElement?.closest(".node");
    run.replaceChildren(header, main);
    mountTree();
    if (focused) run.querySelector('.node[tabindex="0"]')?.focus({ preventScroll: true });
    say("");
    return found.body.dataset.state;
  }

  async function follow(runId) {
    if (!runId || following === runId) return;
    following = runId;
    while (!ended && following === runId) {
      try {
        const uri = `toolsrv://runs/${encodeURIComponent(runId)}/page`;
        const { contents } = await ask("resources/read", { uri });
        if (show(contents[0].text) === "ended") return;
      } catch (error) {
        say(`The tree cannot be read: ${error.message || "the host has no resources"}`);
        return;
      }
      await pause();
    }
  }

  // The run's id is known when the call returns; until then it is the latest run of that task.
  async function find(task) {
    while (!ended && !following) {
      await pause();
      if (ended || following) return;
      try {
        const found = await ask("tools/call", {
          name: "list_runs",
          arguments: { task: task.slice(0, 400), limit: 1 },
        });
        const run = (found.structuredContent?.runs || [])[0];
        if (run && ["queued", "working"].includes(run.status)) return void follow(run.run_id);
      } catch {
        return;
      }
    }
  }

  function given(method, params) {
    if (method === "ui/notifications/tool-input") {
      const wanted = params.arguments || {};
      if (wanted.run_id && able.serverResources) void follow(wanted.run_id);
      else if (wanted.task && able.serverTools && able.serverResources) void find(wanted.task);
    } else if (method === "ui/notifications/tool-result") {
      const result = params.structuredContent || {};
      const text = (params.content || []).map((one) => one.text || "").join("\n");
      const runId = result.run_id || result.name;
      if (runId && able.serverResources) void follow(runId);
      else say(text || result.answer || result.status || "");
    } else if (method === "ui/notifications/tool-cancelled") {
      if (!following) say("The call was cancelled.");
    }
  }

  addEventListener("message", (event) => {
    const message = event.data;
    if (event.source !== parent || !message || message.jsonrpc !== "2.0") return;
    if (message.id !== undefined && !message.method) {
      const [done, failed] = waiting.get(message.id) || [];
      waiting.delete(message.id);
      if (done) message.error ? failed(message.error) : done(message.result);
    } else if (message.id !== undefined) {
      if (message.method === "ui/resource-teardown") ended = true;
      post({ id: message.id, result: {} });
    } else given(message.method, message.params || {});
  });

  ask("ui/initialize", {
    protocolVersion: "2026-01-26",
    appInfo: { name: "toolsrv", version: "1" },
    appCapabilities: {},
  }).then(
    (result) => {
      able = result.hostCapabilities || {};
      note("ui/notifications/initialized");
      say("Waiting for the run…");
    },
    () => say("The host does not speak MCP Apps."),
  );
})();
