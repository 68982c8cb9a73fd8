// Live updates: polls the version of the state, replaces the answer when it changes, and marks new rows. Completion of
// the search, and the keyboard. Without this script every page still works, with links and forms only.
"use strict";

(() => {
  const EVERY_MS = 500;
  const GONE_AFTER = 3;
  let failures = 0;

  // A browser may refuse to keep anything.
  const stored = (key) => { try { return localStorage.getItem(key); } catch (error) { return null; } };
  const store = (key, text) => {
    try {
      if (text === null) localStorage.removeItem(key); else localStorage.setItem(key, text);
    } catch (error) { /* not allowed, or no room: the page works without */ }
  };

  const answer = () => document.getElementById("answer");

  const say = (text) => { document.getElementById("said").textContent = text; };

  const showTrouble = (text) => {
    const banner = document.getElementById("trouble");
    if (text && banner.hidden) say(text);  // once: the text contains an age in seconds
    if (banner.textContent !== (text || "")) banner.textContent = text || "";
    banner.hidden = !text;
  };

  // The age of the newest record; the exact time is its title.
  const showTime = (time) => {
    const since = document.getElementById("since");
    if (!since) return;
    if (time && since.dateTime !== time) {
      since.dateTime = time;
      since.title = `the newest record is of ${time}`;
    }
    const seconds = Math.max(Math.round((Date.now() - Date.parse(since.dateTime)) / 1000), 0);
    const [count, unit] = seconds < 120 ? [seconds, "s"] : seconds < 7200 ? [Math.round(seconds / 60), "min"]
      : seconds < 172800 ? [Math.round(seconds / 3600), "h"] : [Math.round(seconds / 86400), "days"];
    const text = `newest record ${count} ${unit} ago`;
    if (since.textContent !== text) since.textContent = text;
  };

  // Tables: their rows are sorted and filtered, and columns hidden, as they are shown; a new answer is arranged alike.
  const arrangements = new Map();
  const arrangementOf = (part) => {
    const key = `${location.pathname} ${part.getAttribute("aria-labelledby")}`;
    if (!arrangements.has(key)) {
      let columns = [];
      try { columns = JSON.parse(stored(`aclog-columns ${key}`) || "[]"); } catch (error) { /* as if none was hidden */ }
      arrangements.set(key, { key, text: "", column: "", by: 1, columns: new Set(columns) });
    }
    return arrangements.get(key);
  };
  const numberOf = (text) => Number(text.replaceAll(",", "") || NaN);
  const inOrder = (one, other) => {
    const [low, high] = [numberOf(one), numberOf(other)];
    return Number.isNaN(low) || Number.isNaN(high) ? one.localeCompare(other) : low - high;
  };
  const titleOf = (head) => head.dataset.title;

  const arrange = (part) => {
    const { text, column, by, columns } = arrangementOf(part);
    const wanted = text.trim().toLowerCase();
    for (const table of part.querySelectorAll("table:not(.matrix)")) {
      const heads = [...table.tHead.rows[0].cells];
      const place = heads.findIndex((head) => titleOf(head) === column);
      const body = table.tBodies[0];
      const found = [...body.rows];
      found.forEach((row, number) => { row.dataset.place = row.dataset.place || String(number); });
      found.sort((one, other) => (place < 0 ? 0 : by * inOrder(one.cells[place].innerText, other.cells[place].innerText))
        || one.dataset.place - other.dataset.place);
      body.append(...found);
      heads.forEach((head, number) => {
        if (number === place) head.setAttribute("aria-sort", by > 0 ? "ascending" : "descending");
        else head.removeAttribute("aria-sort");
        for (const row of table.rows) row.cells[number].hidden = columns.has(titleOf(head));
      });
    }
    const found = [...part.querySelectorAll("[data-key]")];
    for (const row of found) row.hidden = Boolean(wanted) && !row.textContent.toLowerCase().includes(wanted);
    const count = part.querySelector(".shown");
    if (!count) return;
    const shown = wanted ? `${found.filter((row) => !row.hidden).length} of ${found.length} rows here` : "";
    count.textContent = shown;
  };

  const sorting = (part, head) => {
    if (!head.dataset.title) {
      head.dataset.title = `${head.cellIndex} ${head.textContent}`;  // two may have one title
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.textContent = head.textContent;
      button.title = "Sort the rows that are shown";
      head.replaceChildren(button);
    }
    head.firstChild.onclick = () => {
      const state = arrangementOf(part);
      const title = titleOf(head);
      // Up, down, and as they came.
      if (state.column !== title) Object.assign(state, { column: title, by: 1 });
      else if (state.by > 0) state.by = -1;
      else state.column = "";
      arrange(part);
    };
  };

  const columnChoice = (part, titles) => {
    const choice = document.createElement("details");
    const summary = document.createElement("summary");
    choice.className = "columns";
    choice.dataset.fold = `columns ${part.getAttribute("aria-labelledby")}`;
    summary.textContent = "Columns";
    choice.append(summary, ...titles.map((title) => {
      const label = document.createElement("label");
      const box = document.createElement("input");
      Object.assign(box, { type: "checkbox", checked: !arrangementOf(part).columns.has(title), value: title });
      box.id = `column-${part.getAttribute("aria-labelledby")}-${title}`;
      box.onchange = () => {
        const { key, columns } = arrangementOf(part);
        if (box.checked) columns.delete(title); else columns.add(title);
        store(`aclog-columns ${key}`, columns.size ? JSON.stringify([...columns]) : null);
        arrange(part);
      };
      label.append(box, title.replace(/^\d+/, ""));
      return label;
    }));
    return choice;
  };

  const FEWEST = 5;
  const toolsOf = (part) => {
    const ways = part.querySelector(".ways");
    const tables = [...part.querySelectorAll("table:not(.matrix)")];
    const heads = tables.flatMap((table) => [...table.tHead.rows[0].cells]);
    if (!ways || part.querySelectorAll("[data-key]").length < FEWEST) return;
    for (const head of heads) sorting(part, head);
    if (!part.querySelector(".tools")) {
      const tools = document.createElement("span");
      const filter = document.createElement("input");
      const count = document.createElement("span");
      tools.className = "tools";
      count.className = "shown count";
      Object.assign(filter, { type: "search", id: `rows-${part.getAttribute("aria-labelledby")}`, placeholder: "Filter rows" });
      filter.setAttribute("aria-label", `Filter the rows of ${part.querySelector("h2").firstChild.textContent.trim()}`);
      filter.setAttribute("aria-keyshortcuts", "f");
      filter.value = arrangementOf(part).text;
      filter.oninput = () => { arrangementOf(part).text = filter.value; arrange(part); say(count.textContent); };
      filter.onkeydown = (event) => {
        if (event.key !== "Escape") return;
        filter.value = arrangementOf(part).text = "";
        arrange(part);
        filter.blur();
      };
      tools.append(count, filter);
      if (heads.length) tools.append(columnChoice(part, [...new Set(heads.map(titleOf))]));
      ways.prepend(tools);
    }
    arrange(part);
  };

  // Beside a list, the details of a line are a sheet: a button closes it, and a click outside.
  const SHEET = matchMedia("(min-width: 75rem)");
  const closing = (line) => {
    if (line.querySelector(".close")) return;
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "close", title: "Close (Escape)" });
    button.setAttribute("aria-label", "Close the details");
    button.onclick = () => { line.open = false; line.querySelector("summary").focus(); };
    line.querySelector("summary").after(button);
  };
  document.addEventListener("click", (event) => {
    if (!SHEET.matches) return;
    const own = event.target.closest("details.line");
    for (const each of document.querySelectorAll("details.line[open]")) if (each !== own) each.open = false;
  });

  const prepare = () => {
    showTime("");
    for (const part of document.querySelectorAll("#answer section")) toolsOf(part);
    for (const line of document.querySelectorAll("#answer details.line")) closing(line);
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
    const row = element.closest("[data-key]");
    return row ? `${partOf(row)} ${row.dataset.key}` : partOf(element);
  };
  const rows = (root) => new Map([...root.querySelectorAll("[data-key]")].map((row) => [rowOf(row), row]));
  const kindOf = (element) => `${element.tagName} ${element.getAttribute("href") || element.id} ${rowOf(element)}`;
  const reachable = (root) => [root, ...root.querySelectorAll("a[href], button, summary, input, [tabindex]")];
  const scrolled = (root) => [...root.querySelectorAll(".scroll, pre")];
  const folds = (root) => new Map(
    [...root.querySelectorAll("details[data-fold], details[data-key]")].map((each) => [each.dataset.fold || rowOf(each), each]));

  // Saves focus and scroll positions, and restores them in the new answer.
  const placesIn = (before) => {
    const focused = document.activeElement;
    const caret = focused.type === "search" ? [focused.selectionStart, focused.selectionEnd] : null;
    const alike = before.contains(focused) ? reachable(before).filter((each) => kindOf(each) === kindOf(focused)) : [];
    const left = new Map(scrolled(before).map((each) => [partOf(each), [each.scrollLeft, each.scrollTop]]));
    const opened = folds(before);
    return (fresh) => {
      for (const [key, each] of folds(fresh)) each.open = opened.has(key) && opened.get(key).open;
      for (const each of scrolled(fresh)) [each.scrollLeft, each.scrollTop] = left.get(partOf(each)) || [0, 0];
      if (!alike.length) return;
      const again = reachable(fresh).filter((each) => kindOf(each) === kindOf(focused));
      const next = again[alike.indexOf(focused)] || again[0] || fresh;
      next.focus({ preventScroll: true });
      if (caret && next.setSelectionRange) next.setSelectionRange(...caret);
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
    // The element remains: it is what htmx replaces by a view that was requested meanwhile.
    for (const { name } of [...before.attributes]) if (!fresh.hasAttribute(name)) before.removeAttribute(name);
    for (const { name, value } of fresh.attributes) before.setAttribute(name, value);
    before.replaceChildren(...document.adoptNode(fresh).childNodes);
    document.title = page.title;
    if (window.htmx) window.htmx.process(before);
    prepare();
    restore(before);
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
      status.parentElement.classList.toggle("stale", Boolean(found.trouble));
      document.getElementById("health").textContent = found.trouble ? "not confirmed" : "live";
      showTime(found.time);
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

  // The search completes what is typed; the server decides what the viewer may see.
  const search = () => {
    const input = document.getElementById("find");
    if (!input) return;
    const list = document.getElementById("completions");
    const viewer = document.querySelector(".viewer bdi");
    const RECENT = "aclog-recent";
    let chosen = -1;
    let latest = 0;
    let held = null;  // keys pressed before the completions of the text are there: they are not for those of an older text
    Object.entries({ role: "combobox", "aria-expanded": "false", "aria-controls": list.id, "aria-autocomplete": "list" })
      .forEach(([name, value]) => input.setAttribute(name, value));
    const recent = () => {
      try { return JSON.parse(stored(RECENT) || "[]"); } catch (error) { return []; }
    };
    const choose = (place) => {
      const options = [...list.children];
      chosen = place;
      options.forEach((each, number) => each.setAttribute("aria-selected", String(number === chosen)));
      if (chosen < 0) { input.removeAttribute("aria-activedescendant"); return; }
      input.setAttribute("aria-activedescendant", options[chosen].id);
      options[chosen].scrollIntoView({ block: "nearest" });
    };
    const close = () => {
      latest += 1;  // completions that are still on their way do not open it again
      held = null;
      list.hidden = true;
      input.setAttribute("aria-expanded", "false");
      choose(-1);
    };
    const open = (place) => {
      const { text, kind, url } = list.children[place].completion;
      const others = recent().filter((each) => each.url !== url);
      store(RECENT, JSON.stringify([{ text, kind, url }, ...others].slice(0, 8)));
      location.assign(url);
    };
    const show = (completions) => {
      list.replaceChildren(...completions.map((completion, number) => {
        const option = document.createElement("li");
        const kind = document.createElement("span");
        option.role = "option";
        option.id = `completion-${number}`;
        option.completion = completion;
        option.append(document.createElement("bdi"), kind);
        option.firstChild.textContent = completion.text;
        kind.textContent = completion.kind;
        option.addEventListener("mousedown", (event) => { event.preventDefault(); open(number); });
        return option;
      }));
      list.hidden = !completions.length;
      input.setAttribute("aria-expanded", String(!list.hidden));
      choose(-1);
    };
    const completionsOf = async (text) => {
      const moment = document.querySelector('.find [name="as_of"]');
      const asked = new URLSearchParams({ q: text });
      if (moment) asked.set("as_of", moment.value);
      try {
        const response = await fetch(`/complete?${asked}`, { cache: "no-store" });
        return response.ok ? (await response.json()).completions : [];
      } catch (error) { return []; }
    };
    const press = (key) => {
      const last = list.children.length - 1;
      if (key === "ArrowDown") choose(chosen < last ? chosen + 1 : Math.min(last, 0));
      else if (key === "ArrowUp") choose(chosen > 0 ? chosen - 1 : last);
      else if (chosen >= 0) open(chosen);
      else input.form.requestSubmit();
    };
    const complete = async () => {
      const mine = ++latest;
      const text = input.value;
      held = [];
      choose(-1);
      const last = text.trim() ? [] : recent();
      const others = await completionsOf(text);
      const completions = [...last, ...others.filter((each) => !last.some((other) => other.url === each.url))];
      if (mine !== latest) return;  // the text is another one, or the list was closed
      const keys = held;
      held = null;
      show(completions);
      for (const key of keys) press(key);
    };
    input.addEventListener("input", complete);
    input.addEventListener("focus", complete);
    input.addEventListener("blur", close);
    input.addEventListener("keydown", (event) => {
      const isArrow = event.key === "ArrowDown" || event.key === "ArrowUp";
      if (event.isComposing) return;
      if (event.key === "Escape") {
        close();
      } else if (held && (isArrow || (event.key === "Enter" && held.length))) {
        event.preventDefault();
        held.push(event.key);
      } else if (!held && !list.hidden && (isArrow || (event.key === "Enter" && chosen >= 0))) {
        event.preventDefault();
        press(event.key);
      }
    });
    // A browser is shared: another user does not see what this one searched.
    if (viewer) viewer.closest("form").addEventListener("submit", () => store(RECENT, null));
  };

  // Keys: Ctrl+K and / go to the search, j and k through rows, c copies one, f filters them, Escape closes a sheet.
  const isTyping = (element) => /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName) || element.isContentEditable;
  const step = (by) => {
    const all = [...document.querySelectorAll("#answer [data-key]")].filter((each) => each.getClientRects().length);
    if (!all.length) return;
    const at = all.indexOf(document.activeElement.closest("[data-key]"));
    const row = all[Math.min(Math.max(at + by, 0), all.length - 1)];
    const target = row.querySelector("summary") || row;
    if (target === row) row.tabIndex = -1;
    target.focus();
  };
  // The cells of a row as a spreadsheet takes them; of a line, what it shows.
  const copyRow = async () => {
    const row = document.activeElement.closest("#answer [data-key]");
    if (!row || !navigator.clipboard) return;
    const cells = row.cells ? [...row.cells].filter((each) => !each.hidden) : [...row.querySelectorAll("summary > span")];
    await navigator.clipboard.writeText(cells.map((each) => each.innerText.replace(/\s+/g, " ").trim()).join("\t"));
    say("row copied");
  };
  document.addEventListener("keydown", (event) => {
    const find = document.getElementById("find");
    if (find && event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      find.select();
      find.focus();
    } else if (event.key === "Escape") {
      for (const each of document.querySelectorAll("details.line[open]")) each.open = false;
    } else if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) {
      return;
    } else if (find && event.key === "/") {
      event.preventDefault();
      find.focus();
    } else if (event.key === "j" || event.key === "k") {
      step(event.key === "j" ? 1 : -1);
    } else if (event.key === "c") {
      copyRow();
    } else if (event.key === "f") {
      const filters = [...document.querySelectorAll("#answer .tools input[type=search]")];
      const own = document.activeElement.closest("section");
      const filter = filters.find((each) => each.closest("section") === own) || filters[0];
      if (!filter || !filter.getClientRects().length) return;
      event.preventDefault();
      filter.select();
      filter.focus();
    }
  });

  const collapse = () => {
    const button = document.querySelector(".collapse");
    if (!button) return;
    const set = (isNarrow) => {
      document.body.classList.toggle("narrow", isNarrow);
      button.textContent = isNarrow ? "»" : "« Collapse";
      button.setAttribute("aria-label", isNarrow ? "Expand the menu" : "Collapse the menu");
    };
    button.hidden = false;
    set(stored("aclog-menu") === "narrow");
    button.onclick = () => {
      set(!document.body.classList.contains("narrow"));
      store("aclog-menu", document.body.classList.contains("narrow") ? "narrow" : "wide");
    };
  };

  // The moment applies to the view that is shown now, whose parameters the forms have changed since it was loaded.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.id !== "moment" || new URL(form.action).pathname !== location.pathname) return;
    for (const each of form.querySelectorAll("input[type=hidden]")) each.remove();
    for (const [name, value] of new URLSearchParams(location.search)) {
      if (name === "as_of" || name === "as_of.exact" || name === "first") continue;
      const hidden = document.createElement("input");
      Object.assign(hidden, { type: "hidden", name, value });
      form.append(hidden);
    }
  });

  document.addEventListener("DOMContentLoaded", () => { prepare(); search(); collapse(); setTimeout(follow, EVERY_MS); });
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
