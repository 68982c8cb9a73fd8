// Keeps a page live: asks for the state's version, exchanges the answer when there is a new one, and marks what is new.
// Without it every page still works, by links and forms alone.
"use strict";

(() => {
  const EVERY_MS = 500;
  const GONE_AFTER = 3;
  let failures = 0;

  const keys = (root) => new Set([...root.querySelectorAll("tr[data-key]")].map((row) => row.dataset.key));

  const say = (text) => { document.getElementById("said").textContent = text; };

  const showTrouble = (text) => {
    const banner = document.getElementById("trouble");
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

  // The answer of the same address, with new rows marked; what has the focus keeps it.
  const refresh = async () => {
    const before = document.getElementById("answer");
    const known = keys(before);
    const focused = document.activeElement;
    const inside = before.contains(focused) ? focused.getAttribute("href") || focused.id : null;
    const response = await fetch(location.href, { headers: { accept: "text/html" } });
    if (response.redirected || !(response.headers.get("content-type") || "").startsWith("text/html")) return;
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html").getElementById("answer");
    if (!fresh || document.getElementById("answer") !== before) return;
    let changed = 0;
    if (known.size) {
      for (const row of fresh.querySelectorAll("tr[data-key]")) {
        if (!known.has(row.dataset.key)) { row.classList.add("changed"); changed += 1; }
      }
    }
    const gone = [...known].filter((key) => !keys(fresh).has(key)).length;
    before.replaceWith(document.adoptNode(fresh));
    if (window.htmx) window.htmx.process(fresh);
    prepare();
    if (inside) {
      const again = [...fresh.querySelectorAll("a[href], [id]")]
        .find((each) => each.getAttribute("href") === inside || each.id === inside);
      if (again) again.focus({ preventScroll: true });
    }
    if (changed || gone) say(`the rules changed: ${changed} rows are new, ${gone} are gone`);
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
      if (found.version !== status.dataset.version) {
        status.dataset.version = found.version;
        await refresh();
      }
    } catch (error) {
      failures += 1;
      if (failures >= GONE_AFTER) showTrouble("The console does not answer: what is shown may be old.");
    }
  };

  const follow = async () => {
    if (!document.hidden) await look();
    setTimeout(follow, EVERY_MS);
  };

  document.addEventListener("DOMContentLoaded", () => { prepare(); setTimeout(follow, EVERY_MS); });
  document.addEventListener("htmx:afterSettle", prepare);
  // An address says what was asked, not what was left empty.
  document.addEventListener("htmx:configRequest", (event) => {
    for (const [name, value] of [...event.detail.formData.entries()]) {
      if (value === "") event.detail.formData.delete(name);
    }
  });
  // A question that cannot be answered shows why, in the place of the answer.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.xhr.status >= 400 && event.detail.xhr.status < 600) event.detail.shouldSwap = true;
  });
})();
