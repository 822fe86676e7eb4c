// The page of `combo view`: asks the server what is new, and puts it in place. Without it every screen still shows.
"use strict";
const body = document.body, main = document.getElementById("main");
const base = body.dataset.base, bundled = "bundled" in body.dataset;
const $ = (id) => document.getElementById(id);
const store = { get: (key) => { try { return localStorage.getItem(key); } catch { return null; } },
  set: (key, value) => { try { localStorage.setItem(key, value); } catch { /* private windows */ } } };

// The key: from the fragment of the address into a cookie that no script can read
async function unlock() {
  const key = location.hash.slice(1);
  if (!/^[\w-]{20,}$/.test(key)) return false;
  history.replaceState(null, "", location.pathname + location.search);
  const answer = await fetch(base + "key", { method: "POST", body: key });
  if (answer.ok) location.reload();
  else $("notice").textContent = "This key is of an earlier page. Open the address that `combo view` printed last.";
  return true;
}

// Time: every age on the page goes on by itself
let ahead = 0, said = {}, heard = Date.now(), unheard = 0;
const hostNow = () => Date.now() / 1000 + ahead;
function brief(seconds) {
  const whole = Math.round(Math.max(0, seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min`;
  if (whole < 172800) return `${(whole / 3600).toFixed(1)} h`;
  return `${Math.min(whole / 86400, 999).toPrecision(3) * 1} d`;
}
function tick() {
  if (bundled || !said) return;
  const away = unheard > 0, age = (Date.now() - heard) / 1000;
  const seen = said.seen === null || said.seen === undefined ? null : said.seen + age;
  body.classList.toggle("away", away || Boolean(said.link));
  body.classList.toggle("late", !said.over && seen !== null && seen > 90);
  $("ago").textContent = away ? `no contact for ${brief(age)}` : said.over && !said.link ? said.over
    : seen === null ? "not seen yet" : said.link ? `last contact ${brief(seen)} ago` : `seen ${brief(seen)} ago`;
  if (said.now === null || away || said.link || said.over) return;
  const now = hostNow();
  for (const one of main.querySelectorAll("[data-since]")) set(one, brief(now - one.dataset.since));
  for (const one of main.querySelectorAll("[data-until]")) set(one, brief(one.dataset.until - now));
}
function set(one, text) { if (one.textContent !== text) one.textContent = text; }
function hear(text) {
  said = JSON.parse(text); heard = Date.now(); unheard = 0;
  if (said.now !== null) ahead = said.now - heard / 1000;
  set($("notice"), said.link || "");
  tick();
}

// What is new: the main part of the page, if it is not what is shown
let tag = "", asking = null;
async function refresh() {
  clearTimeout(asking);
  try {
    const headers = { "x-part": "1", "x-looked": String(looked) };
    if (tag) headers["if-none-match"] = tag;
    const address = location.pathname + location.search;
    const answer = await fetch(address, { headers, cache: "no-store", signal: AbortSignal.timeout(20000) });
    if (answer.status === 401) throw new Error("This page was opened by an earlier `combo view`. Open the address that it printed last.");
    if (answer.ok || answer.status === 304) hear(answer.headers.get("x-said"));
    if (answer.status === 404) throw new Error("This is not a part of the run any more.");
    if (answer.ok) {
      const text = await answer.text();
      if (address === location.pathname + location.search) { put(text); tag = answer.headers.get("etag"); }
    }
  } catch (error) {
    unheard += 1;
    const words = error.name === "Error" ? error.message
      : `The server of this page does not answer: has \`combo view\` ended, or the tunnel to it? The sessions go on. Give the same command again, and this page goes on, too.`;
    set($("notice"), words); tick();
  }
  const pause = unheard ? Math.min(15000, 1000 * 2 ** Math.min(unheard, 4)) : document.hidden ? 30000
    : said.over && !main.querySelector("[data-soon]") ? 10000 : 2000;
  asking = setTimeout(refresh, pause);
}
function put(text) {
  const fresh = document.createElement("main");
  fresh.innerHTML = text; // from our own server, which escapes what is not its own; and no script in it would run
  morph(main, fresh);
  shown();
}
const named = (one) => one.id || one.nodeName === "SECTION" && (one.getAttribute("aria-labelledby") || one.getAttribute("aria-label")) || "";
const same = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && named(a) === named(b);
function found(at, next, later) { // where `next` is by now, if nothing is before it that comes later
  for (let one = at; one && next.nodeType === 1; one = one.nextSibling) {
    if (same(one, next)) return one;
    if (one.nodeType === 1 && later.some((other) => same(one, other))) return null;
  }
  return at && same(at, next) ? at : null;
}
function morph(old, fresh) { // changes only what differs, so that focus, scrolling and what is open stay
  if (old.nodeType !== 1) { if (old.data !== fresh.data) old.data = fresh.data; return; }
  if (old.hasAttribute("data-keep") && old.id === fresh.id && old.getAttribute("src") === fresh.getAttribute("src") && old.dataset.attempt === fresh.dataset.attempt) return;
  if (old !== main) {
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && !["open", "hidden"].includes(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value && !(name === "hidden")) old.setAttribute(name, value);
  }
  if (old === document.activeElement && old.matches("input, select, textarea")) return; // what is typed stays
  const known = new Map([...old.children].filter((one) => one.id).map((one) => [one.id, one]));
  let at = old.firstChild;
  const all = [...fresh.childNodes];
  for (const [place, next] of all.entries()) {
    const moved = next.id && known.get(next.id);
    if (moved) { if (moved !== at) old.insertBefore(moved, at); else at = at.nextSibling; morph(moved, next); continue; }
    const there = found(at, next, all.slice(place + 1));
    while (there && at !== there) { const after = at.nextSibling; at.remove(); at = after; } // what has gone
    if (there) { const after = at.nextSibling; morph(at, next); at = after; }
    else old.insertBefore(next, at);
  }
  while (at) { const after = at.nextSibling; at.remove(); at = after; }
}
async function go(address, push = true) { // to another state of the same page, with its address
  if (bundled) { location.href = address; return; }
  if (push) history.pushState(null, "", address);
  const answer = await fetch(address, { cache: "no-store" });
  if (!answer.ok) { location.reload(); return; }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  body.dataset.screen = page.body.dataset.screen; tag = page.body.dataset.tag;
  document.querySelector("header nav").replaceWith(page.querySelector("header nav"));
  main.replaceChildren(...page.getElementById("main").childNodes);
  hear(page.body.dataset.said);
  shown(true);
  if (push) { if (body.dataset.screen !== "rollouts") scrollTo(0, 0); main.focus({ preventScroll: true }); }
  refresh();
}
function shown(anew = false) { // after each change of the main part
  const title = main.querySelector("[data-title]");
  document.title = `${title ? title.dataset.title.trim() + " · " : ""}${body.dataset.grid}`;
  filter(); players(); logOf(anew); tick();
}

// Since you last looked
const place = `looked:${body.dataset.run}`;
let looked = Number(store.get(place) || 0);
document.addEventListener("visibilitychange", () => {
  if (bundled) return;
  if (document.hidden) store.set(place, String(Math.round(hostNow())));
  else { looked = Number(store.get(place) || 0); refresh(); }
});
addEventListener("pagehide", () => { if (!bundled && said.now) store.set(place, String(Math.round(hostNow()))); });

// The filter of a list: words, and state:, policy:, environment:, cause:
function filter() {
  const form = main.querySelector("form[data-filter]");
  if (!form) { if (bundled) filterRollouts(); return; }
  const input = form.elements.q, wanted = new URLSearchParams(location.search).get("q") || "";
  if (input !== document.activeElement && input.value !== wanted) input.value = wanted;
  const words = bundled ? input.value.toLowerCase().split(/\s+/).filter(Boolean) : [], rows = main.querySelectorAll(`${form.dataset.filter} tbody tr`);
  let count = 0;
  for (const row of rows) {
    const fits = words.every((word) => {
      const not = word.startsWith("-") && word.length > 1, [, key, values] = word.slice(not).match(/^(?:([a-z]+):)?(.*)$/);
      const name = key && ["state", "policy", "environment", "cause"].find((one) => one.startsWith(key));
      const text = (name ? row.dataset[name] : row.textContent).toLowerCase();
      return values.split(",").some((value) => name === "cause" ? text === value : text.includes(name || !key ? value : `${key}:${value}`)) !== not;
    });
    row.hidden = !fits; count += fits;
  }
  if (bundled) {
    form.querySelector("[data-count]").textContent = words.length ? `${count} of ${rows.length}` : `${rows.length}`;
    main.querySelector("[data-empty]").hidden = count > 0 || !rows.length;
  }
  for (const chip of main.querySelectorAll(".chip")) chip.toggleAttribute("aria-current", new URL(chip.href).searchParams.get("q") === input.value && input.value !== "");
}
function filterRollouts() {
  const asked = new URLSearchParams(location.search), form = main.querySelector("form[data-submit]");
  if (!form) return;
  for (const name of ["show", "policy", "environment"]) form.elements[name].value = asked.get(name) || "";
  const show = { failed: "failure", success: "success" }[asked.get("show")];
  const rows = [...main.querySelectorAll("#rollouts li")], list = $("rollouts");
  for (const row of rows) row.hidden = Boolean((show && row.dataset.state !== show)
    || (asked.get("policy") && row.dataset.policy !== asked.get("policy")) || (asked.get("environment") && row.dataset.environment !== asked.get("environment")));
  const first = (row) => form.elements.show.value === "newest" || row.dataset.state !== "success" ? 0 : 1;
  list.append(...rows.sort((a, b) => first(a) - first(b) || a.dataset.age - b.dataset.age));
  const count = rows.filter((row) => !row.hidden).length, of = form.querySelector("[data-count]");
  of.dataset.all ??= of.textContent;
  of.textContent = count < rows.length ? `${count} of ${of.dataset.all}` : of.dataset.all;
  $("rollouts-title").querySelector("[data-first]").hidden = Boolean(asked.get("show"));
  const at = asked.get("at"), blocks = [...main.querySelectorAll("[data-at]")];
  const chosen = at ? blocks.find((one) => one.dataset.at.split(" ").includes(at)) : blocks.find((one) => one.querySelector("video, img"));
  for (const one of blocks) one.hidden = one !== chosen;
  for (const one of chosen?.querySelectorAll("figure") || []) one.classList.toggle("chosen", one.dataset.key === at);
}
function ask(query) { // the address for a filter
  const address = new URL(location.href);
  for (const [key, value] of Object.entries(query)) if (value) address.searchParams.set(key, value); else address.searchParams.delete(key);
  return address.pathname + address.search;
}
main?.addEventListener("input", (event) => {
  if (event.target.name === "q") { history.replaceState(null, "", ask({ q: event.target.value })); filter(); if (!bundled) { clearTimeout(asking); asking = setTimeout(refresh, 150); } }
  if (event.target.id === "at") seek(event.target.value / 1000);
  if (event.target.id === "log-search") search(event.target.value);
});
main?.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-submit]");
  if (form) { const address = ask(Object.fromEntries(new FormData(form))); if (bundled) { history.replaceState(null, "", address); filter(); } else go(address); }
  if (event.target.id === "speed") for (const one of videos()) one.playbackRate = event.target.value;
  if (event.target.id === "follow" && event.target.checked) follow();
});
document.addEventListener("submit", (event) => {
  if (event.target.method === "dialog") return;
  event.preventDefault();
  const count = event.target.elements.count;
  if ("slots" in event.target.dataset) order({ verb: "slots", count: Number(count.value) }, `Let ${count.value} sessions run at once${event.target.dataset.slots}?`);
});
document.addEventListener("click", (event) => {
  const one = event.target.closest("a, button");
  if (!one || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (one.dataset.copy) { navigator.clipboard?.writeText(one.dataset.copy); one.classList.add("copied"); setTimeout(() => one.classList.remove("copied"), 1500); }
  if (one.dataset.act) order({ verb: one.dataset.act, sessions: (one.dataset.sessions || "").split(" ").filter(Boolean) }, one.dataset.ask);
  if (one.parentElement.dataset.fetch) bring(one.parentElement);
  if (one.id === "play") play();
  if (one.id === "earlier") earlier();
  if (one.matches(".chip[aria-current=true]")) { event.preventDefault(); go(ask({ q: "" })); }
  else if (one.matches("a[href]") && !bundled && one.origin === location.origin && one.pathname.startsWith(base) && !one.target && !/\/(files|whole)\//.test(one.pathname) && !one.getAttribute("href").startsWith("#")) {
    event.preventDefault(); go(one.href);
  }
});
addEventListener("popstate", () => { if (!bundled) go(location.href, false); else filter(); });

// Orders: asked, then sent by POST
function order(what, question) {
  const dialog = $("ask"), answer = $("answer");
  $("question").textContent = question; answer.hidden = true; $("yes").hidden = false; dialog.returnValue = "";
  dialog.showModal();
  dialog.onclose = async () => {
    if (dialog.returnValue !== "yes") return;
    dialog.onclose = null; $("yes").hidden = true; $("question").textContent = "The order is given …"; dialog.showModal();
    try {
      const sent = await fetch(base + "act", { method: "POST", body: JSON.stringify(what) });
      const done = sent.ok ? await sent.json() : { done: false, words: await sent.text() };
      $("question").textContent = done.done ? "Done." : "That did not work.";
      answer.textContent = done.words; answer.hidden = !done.words;
    } catch { $("question").textContent = "No answer: the order may still be carried out."; }
    refresh();
  };
}

// Rollouts: several videos on one playhead; a file comes on a click
const videos = () => [...main.querySelectorAll("video")].filter((one) => one.checkVisibility());
const longest = () => Math.max(0, ...videos().map((one) => one.duration || 0));
function players() {
  const head = $("playhead");
  if (!head) return;
  head.hidden = !videos().length;
  if (bundled) for (const one of videos()) one.preload = "metadata";
  const key = main.querySelector(".viewer").dataset.key; // what is shown stays, also when newer episodes come
  if (key && !bundled && !new URLSearchParams(location.search).get("at")) history.replaceState(null, "", ask({ at: key }));
  for (const one of videos()) if (!one.dataset.ready) {
    one.dataset.ready = "1"; one.playbackRate = $("speed").value;
    for (const name of ["timeupdate", "loadedmetadata", "ended", "play", "pause"]) one.addEventListener(name, playhead);
    one.addEventListener("click", play);
  }
  playhead();
}
function playhead() {
  const at = Math.max(0, ...videos().map((one) => one.currentTime || 0)), whole = longest();
  if ($("at") && $("at") !== document.activeElement) $("at").value = whole ? 1000 * at / whole : 0;
  if ($("time")) $("time").textContent = `${at.toFixed(1)} s${whole ? ` / ${whole.toFixed(1)}` : ""}`;
  if ($("play")) $("play").textContent = videos().some((one) => !one.paused && !one.ended) ? "❚❚" : "▶";
}
function play() {
  const all = videos(), going = all.some((one) => !one.paused && !one.ended);
  if (!going && all.every((one) => one.ended || one.currentTime >= one.duration)) seek(0);
  for (const one of all) if (going) one.pause(); else if (!one.ended) one.play().catch(() => {});
}
function seek(share) { const at = share * longest(); for (const one of videos()) one.currentTime = Math.min(at, one.duration || at); playhead(); }
async function bring(box) {
  const [button, progress, words] = ["button", "progress", "[role=status]"].map((name) => box.querySelector(name));
  button.disabled = true; progress.hidden = false;
  const path = box.dataset.fetch;
  await fetch(base + "fetch", { method: "POST", body: path });
  for (;;) {
    const state = await (await fetch(`${base}fetched/${path.split("/").map(encodeURIComponent).join("/")}`, { cache: "no-store" })).json();
    if (state.total) { progress.max = state.total; progress.value = state.done; words.textContent = `${Math.round(100 * state.done / state.total)} %`; }
    if (state.here) { box.removeAttribute("data-keep"); tag = ""; refresh(); return; }
    if (state.complaint) { words.textContent = state.complaint; button.disabled = false; return; }
    await new Promise((next) => setTimeout(next, 400));
  }
}

// The log: its end, what follows, what came before, and a search
let log = { end: -1, start: 0, timer: null, name: "", pending: "" };
const LOG_MOST = 4e6; // characters in the tab
function logOf(anew) {
  const box = $("log");
  if (!box) { clearTimeout(log.timer); log.name = ""; return; }
  const wanted = new URLSearchParams(location.search).get("attempt") || box.dataset.attempt, name = `${box.dataset.log}/${wanted}`;
  if (log.name === name && !anew) return;
  clearTimeout(log.timer);
  log = { end: -1, start: 0, timer: null, name, pending: "" };
  $("raw").href = $("raw").getAttribute("href").replace(/attempt-\d+/, `attempt-${wanted}`);
  $("lines").textContent = ""; follow();
}
async function part(from, most = 65536) {
  const answer = await fetch(`${base}log/${log.name}?from=${from}&most=${most}`, { cache: "no-store" });
  return answer.ok ? answer.json() : null;
}
const amount = (bytes) => bytes < 1024 ? `${bytes} bytes` : bytes < 1048576 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1048576).toFixed(1)} MiB`;
const lastState = (line) => line.split("\r").filter(Boolean).pop() || "";
async function follow() {
  const name = log.name, lines = $("lines");
  clearTimeout(log.timer);
  if (!lines || !name) return;
  const found = await part(log.end < 0 ? -1 : log.end).catch(() => null);
  if (name !== log.name || !$("lines")) return;
  if (found && (found.size < log.end || log.end < 0)) { log.start = found.start; lines.textContent = ""; log.pending = ""; log.end = found.start; }
  if (found && found.end > log.end) {
    const stays = lines.scrollTop + lines.clientHeight < lines.scrollHeight - 30 && lines.textContent;
    const whole = (log.pending + found.text).split("\n");
    log.pending = whole.pop().replace(/^[^]*\r(?=[^\r])/, ""); log.end = found.end; // a bar is one line for hours
    if (lines.lastChild?.nodeType === 3 && lines.dataset.partial) lines.lastChild.remove();
    if (whole.length) lines.append(whole.map(lastState).join("\n") + "\n");
    if (log.pending) lines.append(lastState(log.pending));
    lines.dataset.partial = log.pending ? "1" : "";
    let held = [...lines.childNodes].reduce((sum, one) => sum + one.length, 0);
    for (; held > LOG_MOST; log.start = 0) { held -= lines.firstChild.length; lines.firstChild.remove(); } // "earlier" would leave a gap
    if (!stays) lines.scrollTop = lines.scrollHeight;
  }
  if (found) set($("log-size"), `attempt ${name.split("/")[1]}, ${amount(found.size)}`);
  else if (!lines.textContent) set($("log-size"), "no log yet, or the host does not answer");
  $("earlier").disabled = log.start <= 0;
  if (found && found.end < found.size) { follow(); return; }
  if ($("follow")?.checked) log.timer = setTimeout(follow, document.hidden ? 15000 : 1000);
}
async function earlier() {
  const from = Math.max(0, log.start - 65536), found = await part(from, log.start - from), lines = $("lines");
  if (!found) return;
  const before = lines.scrollHeight;
  lines.prepend(found.text.split("\n").map(lastState).join("\n"));
  log.start = from; lines.scrollTop += lines.scrollHeight - before; $("earlier").disabled = from <= 0;
}
let searching = null;
function search(word) {
  clearTimeout(searching);
  const hits = $("hits");
  if (word.length < 2) { hits.hidden = true; return; }
  searching = setTimeout(async () => {
    const answer = await fetch(`${base}search/${log.name}?q=${encodeURIComponent(word)}`), found = answer.ok ? await answer.json() : [];
    hits.replaceChildren(...(found.length ? found : [{ number: "", text: "no line has it" }]).map(({ number, text }) => {
      const row = document.createElement("li"), line = document.createElement("span"), at = text.toLowerCase().indexOf(word.toLowerCase());
      const count = document.createElement("span"); count.textContent = number;
      if (at < 0) line.textContent = lastState(text);
      else { const hit = document.createElement("mark"); hit.textContent = text.slice(at, at + word.length); line.append(text.slice(0, at), hit, text.slice(at + word.length)); }
      row.append(count, line); return row;
    }));
    hits.hidden = false;
  }, 250);
}

// Keys
function move(by) {
  const pager = main.querySelector(by > 0 ? "[rel=next]" : "[rel=prev]");
  if (pager) { pager.click(); return; }
  const rows = [...main.querySelectorAll(".list tbody tr")].filter((one) => !one.hidden), now = rows.findIndex((one) => one.classList.contains("at"));
  const next = rows[Math.min(Math.max(now + by, 0), rows.length - 1)];
  if (!next) return;
  rows[now]?.classList.remove("at"); next.classList.add("at"); next.querySelector("a")?.focus(); next.scrollIntoView({ block: "nearest" });
}
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("ask")?.open) return;
  if (event.target.matches("input, select, textarea")) { if (event.key === "Escape") event.target.blur(); return; }
  const digit = document.querySelector(`nav [data-key="${event.key}"]`);
  const keys = { j: () => move(1), k: () => move(-1), "/": () => main.querySelector("input[type=search]")?.focus(), f: failed, "?": help };
  if (event.key === " " && videos().length && !event.target.matches("button, summary, a")) keys[" "] = play;
  if (digit) digit.click(); else if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
});
function failed() {
  const now = new URLSearchParams(location.search), wrong = "state:failed,partial,lost"; // as in the full screen
  if (body.dataset.screen === "rollouts") go(ask({ show: now.get("show") === "failed" ? "" : "failed" }));
  else if (main.querySelector("form[data-filter]")) go(ask({ q: now.get("q") === wrong ? "" : wrong }));
}
function help() {
  $("question").textContent = "1 run, 2 rollouts, 3 host, 4 report, 5 all hosts. / filter or search, f failed only, j and k next and previous, space plays, Esc leaves a field. Every state of the page has an address that can be sent on."; $("answer").hidden = true; $("yes").hidden = true;
  $("ask").onclose = null; $("ask").showModal();
}

unlock().then((opening) => {
  if (opening || "locked" in body.dataset) return;
  if (!bundled) { hear(body.dataset.said); setInterval(tick, 1000); }
  tag = body.dataset.tag; // what the page came with is not sent again
  shown(true);
  if (!bundled) refresh();
});
