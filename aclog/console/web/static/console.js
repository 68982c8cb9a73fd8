// Live updates: polls the version of the state, replaces the answer when it changes, and marks new rows.
// Without this script every page still works, with links and forms only.
"use strict";

(() => {
  const EVERY_MS = 500;
  const GONE_AFTER = 3;
  let failures = 0;

  const answer = () => document.getElementById("answer");

  const say = (text) => { document.getElementById("said").textContent = text; };

  const showTrouble = (text) => {
    const banner = document.getElementById("trouble");
    if (text && banner.hidden) say(text);  // once: the text contains an age in seconds
    if (banner.textContent !== (text || "")) banner.textContent = text || "";
    banner.hidden = !text;
  };

  const prepare = () => {
    for (const button of document.querySelectorAll("button[data-copy]")) {
      button.hidden = !navigator.clipboard;
      button.onclick = async () => {
        await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
        say("copied");
      };
    }
    for (const handle of document.querySelectorAll("#answer data[data-handle]")) {
      const input = document.querySelector(`input[type=range][name="${CSS.escape(handle.dataset.handle)}"]`);
      if (!input || input === document.activeElement) continue;
      input.min = handle.dataset.least;
      input.max = handle.dataset.most;
      input.value = handle.value;
    }
    for (const input of document.querySelectorAll("input[type=file][data-into]")) {
      input.onchange = async () => {
        const area = document.getElementById(input.dataset.into);
        if (!input.files.length || !area) return;
        area.value = await input.files[0].text();
        input.value = "";
        area.dispatchEvent(new Event("input", { bubbles: true }));
      };
    }
  };

  // A part is identified by its heading, a row by its part and its key.
  const partOf = (element) => {
    const part = element.closest("[aria-labelledby]");
    return part ? part.getAttribute("aria-labelledby") : "";
  };
  const rowOf = (element) => {
    const row = element.closest("tr[data-key]");
    return row ? `${partOf(row)} ${row.dataset.key}` : partOf(element);
  };
  const rows = (root) => new Map([...root.querySelectorAll("tr[data-key]")].map((row) => [rowOf(row), row]));
  const kindOf = (element) => `${element.tagName} ${element.getAttribute("href") || element.id} ${rowOf(element)}`;
  const reachable = (root) => [root, ...root.querySelectorAll("a[href], button, [tabindex]")];
  const scrolled = (root) => [...root.querySelectorAll(".scroll, pre")];

  // Saves focus and scroll positions, and restores them in the new answer.
  const placesIn = (before) => {
    const focused = document.activeElement;
    const alike = before.contains(focused) ? reachable(before).filter((each) => kindOf(each) === kindOf(focused)) : [];
    const left = new Map(scrolled(before).map((each) => [partOf(each), each.scrollLeft]));
    return (fresh) => {
      for (const each of scrolled(fresh)) each.scrollLeft = left.get(partOf(each)) || 0;
      if (!alike.length) return;
      const again = reachable(fresh).filter((each) => kindOf(each) === kindOf(focused));
      (again[alike.indexOf(focused)] || again[0] || fresh).focus({ preventScroll: true });
    };
  };

  // Marks and announces the differences.
  const compare = (before, fresh) => {
    const known = rows(before);
    const now = rows(fresh);
    let added = 0;
    let other = 0;
    const same = [];
    for (const [key, row] of now) {
      const old = known.get(key);
      if (old && old.textContent === row.textContent) { same.push([old, row]); continue; }
      row.classList.add("changed");
      if (old) other += 1; else added += 1;
    }
    const gone = [...known.keys()].filter((key) => !now.has(key)).length;
    const [said, saidNow] = [before, fresh].map((root) => root.querySelector(".answer"));
    const isOther = saidNow && (!said || said.textContent !== saidNow.textContent);
    if (isOther) saidNow.classList.add("changed");
    if (!added && !other && !gone && !isOther) {
      // Something else is new, such as the findings: the marked rows are still the newest change.
      for (const [old, row] of [...same, [said, saidNow]]) {
        if (old && row && old.classList.contains("changed")) row.classList.add("changed");
      }
      return;
    }
    const counts = [[added, "new"], [other, "changed"], [gone, "removed"]].filter(([count]) => count);
    const summary = counts.map(([count, how]) => `${count} row${count === 1 ? "" : "s"} ${how}`).join(", ");
    say(["The rules changed", summary, isOther ? saidNow.textContent : ""].filter(Boolean).join(": "));
  };

  // Replaces the answer with the newest one for the same address; returns whether that succeeded.
  const refresh = async () => {
    const before = answer();
    const response = await fetch(location.href, { headers: { accept: "text/html" } });
    if (response.status === 401 || response.redirected) { location.reload(); return false; }
    if (response.status === 429) return false;  // one at a time: retry
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = page.getElementById("answer");
    if (!fresh || answer() !== before) return false;  // another view was requested meanwhile: retry
    compare(before, fresh);
    const restore = placesIn(before);
    before.replaceWith(document.adoptNode(fresh));
    document.title = page.title;
    if (window.htmx) window.htmx.process(fresh);
    prepare();
    restore(fresh);
    return true;
  };

  const look = async () => {
    const status = document.getElementById("status");
    try {
      const response = await fetch("/live", { cache: "no-store" });
      if (response.status === 401 || response.redirected) { location.reload(); return; }
      const found = await response.json();
      failures = 0;
      showTrouble(found.trouble);
      if (status.textContent !== found.status) status.textContent = found.status;
      if (found.version !== status.dataset.version && await refresh()) status.dataset.version = found.version;
    } catch (error) {
      failures += 1;
      if (failures >= GONE_AFTER) showTrouble("The console does not respond: this page may be out of date.");
    }
  };

  const follow = async () => {
    if (!document.hidden) await look();
    setTimeout(follow, EVERY_MS);
  };

  document.addEventListener("DOMContentLoaded", () => { prepare(); setTimeout(follow, EVERY_MS); });
  document.addEventListener("htmx:afterSettle", prepare);
  // A moved handle replaces the text field beside it.
  document.addEventListener("input", (event) => {
    const words = event.target.dataset && event.target.dataset.empties;
    const field = words && document.getElementById(words);
    if (field) field.value = "";
  }, true);
  // Empty fields are left out of addresses.
  document.addEventListener("htmx:configRequest", (event) => {
    for (const [name, value] of [...event.detail.formData.entries()]) {
      if (value === "") event.detail.formData.delete(name);
    }
    // At its end a handle means the newest state; beside a filled text field it is ignored.
    for (const handle of event.detail.elt.querySelectorAll("input[type=range][data-empties]")) {
      const words = document.getElementById(handle.dataset.empties);
      const isNewest = handle.dataset.open !== undefined && handle.value === handle.max;
      if (isNewest || (words && words.value !== "")) event.detail.formData.delete(handle.name);
    }
  });
  // The Back button leads to another view, not to the same one again.
  document.addEventListener("htmx:beforeHistoryUpdate", (event) => {
    const { history } = event.detail;
    if (new URL(history.path, location.href).href === location.href) history.type = "replace";
  });
  // An error replaces the answer, with its reason.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.xhr.status < 400) return;
    event.detail.shouldSwap = true;
    event.detail.isError = false;
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    const said = answer().querySelector(".notice, .answer");
    if (said && event.detail.target.id === "answer") say(said.textContent);
  });
  document.addEventListener("htmx:sendError", () => {
    showTrouble("The console does not respond: this page is not the requested view.");
  });
})();
