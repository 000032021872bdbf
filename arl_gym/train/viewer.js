"use strict";
// Recorded text is only ever put into the page as text nodes.

const $ = (id) => document.getElementById(id);

function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false && value != null) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

const known = (value) => value !== undefined && value !== null;
const number = (value, digits = 2) => (known(value) ? `${Number(value.toFixed(digits))}`.replace("-", "−") : "–");
const signed = (value) => (value > 0 ? "+" : "") + number(value);
const counted = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// ---- the filter: terms joined with `and`

const TERM = new RegExp(
  "\\s*(?:(?<no>not\\s+)?(?<flag>[a-z_]+)" +
    "|(?<field>[a-z_]+)\\s*(?<op>==|!=|<=|>=|<|>)\\s*(?<value>'[^']*'|\"[^\"]*\"|[^\\s'\"]+)" +
    "|(?<text>'[^']*'|\"[^\"]*\")\\s+(?<out>not\\s+)?in\\s+(?<hay>[a-z_]+))\\s*(?:\\band\\b|$)",
  "y",
);
const COMPARE = {
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
  "==": (a, b) => a === b,
  "!=": (a, b) => a !== b,
};
const WORDS = { true: 1, false: 0, none: null };

function parse(text) {
  const terms = [];
  TERM.lastIndex = 0;
  while (TERM.lastIndex < text.length) {
    const start = TERM.lastIndex;
    const groups = TERM.exec(text)?.groups;
    if (!groups) {
      throw new Error(`expected field operator value, 'text' in field, or field, at "${text.slice(start)}"`);
    }
    const field = groups.field ?? groups.hay ?? groups.flag;
    if (!data.fields.includes(field)) throw new Error(`no field "${field}"; there are ${data.fields.join(", ")}`);
    terms.push([field, term(groups)]);
  }
  return (member, turn) => terms.every(([field, test]) => test(valueOf(member, turn, field)));
}

function valueOf(member, turn, field) {
  if (field !== "prompt") return turn.fields[field] ?? member.fields[field];
  const last = turn.messages.at(-1);
  return last ? partsOf(last).map((part) => part.text ?? `[image ${part.hash}]`).join("\n") : "";
}

function partsOf(message) {
  return typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;
}

function term(groups) {
  if (groups.flag) return (value) => Boolean(value) !== Boolean(groups.no);
  if (groups.op) return comparison(groups.op, groups.value);
  const text = groups.text.slice(1, -1);
  return (value) => known(value) && String(value).includes(text) !== Boolean(groups.out);
}

function comparison(op, written) {
  const quoted = /^['"]/.test(written);
  const text = quoted ? written.slice(1, -1) : written;
  const word = quoted ? undefined : WORDS[text.toLowerCase()];
  return (value) => {
    if (typeof value === "string") return COMPARE[op](value, text);
    const left = known(value) ? Number(value) : null;
    const right = word !== undefined ? word : quoted ? text : Number(text);
    if ((left === null || right === null) && op !== "==" && op !== "!=") return false;
    return COMPARE[op](left, right);
  };
}

// ---- the list of groups

function listGroups() {
  const items = data.groups.map((members, g) => {
    const first = members[0].fields;
    const dots = members.map((m) => make("i", { class: m.fields.success ? "won" : "" }));
    const won = members.filter((m) => m.fields.success).length;
    const returns = members.map((m) => m.fields.return);
    const spread = Math.min(...returns) === Math.max(...returns) ? "all" : `${number(Math.min(...returns))} …`;
    const button = make(
      "button",
      { type: "button", "data-g": g },
      `Group ${first.group}: ${won} of ${members.length} solved`,
      make("span", { class: "dots", "aria-hidden": "true" }, ...dots),
      make("small", {}, first.task),
      make("small", {}, `return ${spread} ${number(Math.max(...returns))}`),
      make("small", { class: "matches" }),
    );
    return make("li", {}, button);
  });
  $("groups").replaceChildren(...items);
}

function moveInList(event) {
  const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const buttons = [...$("groups").querySelectorAll("li:not([hidden]) button")];
  const next = buttons[buttons.indexOf(document.activeElement) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
  showGroup(Number(next.dataset.g));
}

// ---- one group, its members side by side; cards are filled when they come near the screen

const near = new IntersectionObserver(
  (entries) => {
    for (const entry of entries.filter((e) => e.isIntersecting)) {
      near.unobserve(entry.target);
      fill(entry.target);
    }
  },
  { rootMargin: "800px" },
);

async function addTokens(g) {
  const packed = $(`tokens-${g}`);
  if (!packed) return;
  const lists = await unpack(packed.textContent);
  data.groups[g].forEach((member, m) => member.turns.forEach((turn, k) => Object.assign(turn, lists[m][k])));
  packed.remove();
}

async function showGroup(g) {
  shown = g;
  hideTip();
  for (const button of $("groups").querySelectorAll("button")) {
    button.setAttribute("aria-current", Number(button.dataset.g) === g);
  }
  if (g === null) {
    $("group").replaceChildren(make("p", { class: "note" }, "Nothing to show."));
    return;
  }
  history.replaceState(null, "", `#${g}`);
  await addTokens(g);
  if (shown !== g) return;
  near.disconnect();
  const members = data.groups[g].filter((m) => !holds || m.turns.some((turn) => holds(m, turn)));
  const grid = make("div", { class: "members", tabindex: 0, role: "region", "aria-label": "Members of the group" });
  grid.style.gridTemplateColumns = `repeat(${members.length}, minmax(min(17rem, 85vw), 1fr))`;
  const longest = Math.max(...members.map((m) => m.turns.length));
  grid.append(...members.map(head));
  for (let k = 0; k < longest; k += 1) {
    members.forEach((member, column) => {
      if (k >= member.turns.length) return;
      const card = make("section", { class: "turn", "aria-label": `Copy ${member.fields.copy}, turn ${k + 1}` });
      card.style.gridArea = `${k + 2} / ${column + 1}`;
      card.source = { member, turn: member.turns[k] };
      grid.append(card);
      if (holds && !holds(member, card.source.turn)) fold(card);
      else {
        card.classList.toggle("found", Boolean(holds));
        near.observe(card);
      }
    });
  }
  const first = data.groups[g][0].fields;
  const hidden = data.groups[g].length - members.length;
  const title = `Group ${first.group}: ${first.task}${first.kind ? ` (${first.kind})` : ""}`;
  $("group").replaceChildren(make("h2", {}, title), grid);
  const note = `${counted(hidden, "member")} without such a turn left out.`;
  if (hidden) $("group").append(make("p", { class: "note" }, note));
}

function head(member, column) {
  const { fields, turns } = member;
  const advantages = turns.map((t) => t.fields.advantage).filter(known);
  const mean = advantages.length ? advantages.reduce((a, b) => a + b) / advantages.length : null;
  const valid = turns.filter((t) => t.fields.format_valid).length;
  const node = make(
    "div",
    { class: fields.success ? "member won" : "member" },
    make(
      "div",
      { class: "top" },
      make("h3", {}, `Copy ${fields.copy}`),
      make("strong", { class: fields.success ? "good" : "bad" }, fields.success ? "✓ success" : "✗ no success"),
    ),
    make("div", { class: "numbers" }, `return ${signed(fields.return)}, mean A ${signed(mean)}, ${fields.stop}`),
    make("div", { class: "numbers" }, `${counted(turns.length, "turn")}, ${valid} with a valid format`),
  );
  if (member.error) node.append(make("div", { class: "bad" }, member.error));
  node.style.gridArea = `1 / ${column + 1}`;
  return node;
}

// What the filter does not find takes one line, until it is asked for.
function fold(card) {
  card.classList.add("folded");
  const { turn } = card.source;
  const button = make("button", { type: "button" }, `Turn ${turn.fields.turn}: → ${turn.fields.action}`);
  button.addEventListener("click", () => {
    card.classList.remove("folded");
    card.replaceChildren();
    fill(card);
  });
  card.append(button);
}

function fill(card) {
  const { turn } = card.source;
  const f = turn.fields;
  const rewards = [`reward ${signed(f.env_reward)}`];
  if (f.penalty) rewards.push(`penalty ${signed(-f.penalty)}`);
  const top = make("div", { class: "top" }, make("h3", {}, `Turn ${f.turn}`));
  if (known(f.advantage)) {
    top.append(make("strong", { class: f.advantage < 0 ? "bad" : "good" }, `A ${signed(f.advantage)}`));
  }
  card.append(top, make("div", { class: "numbers" }, rewards.join(", ")));
  const messages = turn.messages.map((message) => prompt(message));
  if (messages.length > 1) {
    const earlier = messages.slice(0, -1);
    card.append(make("details", {}, make("summary", {}, counted(earlier.length, "earlier message")), ...earlier));
  }
  card.append(...messages.slice(-1), ...response(turn));
  const verdict = make("div", {}, "→ ", make("span", { class: "action" }, f.action || "(nothing)"));
  for (const [bad, text] of [
    [!f.format_valid, "format broken"],
    [!f.action_valid, "action not valid"],
    [f.finish && f.finish !== "stop", `ended by ${f.finish}`],
  ]) {
    if (bad) verdict.append(" ", make("span", { class: "bad" }, `✗ ${text}`));
  }
  card.append(verdict);
  paint(card);
}

function prompt(message) {
  const body = make("div", {});
  for (const part of partsOf(message)) {
    if (part.type === "text") body.append(part.text);
    else if (data.images[part.hash]) {
      const src = `data:image/png;base64,${data.images[part.hash]}`;
      body.append(make("img", { src, alt: "what the agent saw" }));
    } else body.append(make("span", { class: "note" }, `[image ${part.hash} ${data.notes[part.hash]}]`));
  }
  const look = body.querySelector("img") ? "text prompt pictures" : "text prompt";
  return make("div", { class: look, tabindex: 0, role: "region", "aria-label": message.role }, body);
}

function response(turn) {
  const count = Math.max(turn.ids.length, turn.tokens?.length ?? 0, turn.old_logprobs?.length ?? 0);
  const whole = make("div", { class: "text response", tabindex: 0 }, turn.fields.response);
  if (!count) return [whole];
  const label = "Response, token by token: the arrow keys move";
  const tokens = make("div", { class: "text response tokens", tabindex: 0, role: "group", "aria-label": label });
  for (let i = 0; i < count; i += 1) {
    tokens.append(make("span", { "data-i": i }, turn.tokens ? turn.tokens[i] : "▪"));
  }
  if (!turn.tokens) return [whole, tokens];
  // The response has no end token, but may have what the chat template had prefilled.
  if (turn.tokens.join("").includes(turn.fields.response)) return [tokens];
  return [tokens, make("details", {}, make("summary", {}, "whole response"), whole)];
}

// ---- colours and numbers of tokens

function strength(turn, i) {
  if (mode === "ratio") {
    const [old, now] = [turn.old_logprobs?.[i], turn.new_logprobs?.[i]];
    return known(old) && known(now) ? (now - old) / data.scales.ratio : 0;
  }
  const value = mode === "entropy" ? turn.entropies?.[i] : turn.fields.advantage;
  return known(value) ? value / data.scales[mode] : 0;
}

function paint(card) {
  for (const span of card.querySelectorAll(".tokens span")) {
    const s = mode === "none" ? 0 : strength(card.source.turn, Number(span.dataset.i)) || 0;
    const colour = s > 0 ? "var(--more)" : "var(--less)";
    span.style.background = s ? `color-mix(in srgb, ${colour} ${Math.min(100, Math.abs(s) * 85)}%, transparent)` : "";
  }
}

function swatch(colour) {
  const node = make("span", { class: "swatch", "aria-hidden": "true" });
  node.style.background = `linear-gradient(90deg, transparent, var(${colour}))`;
  return node;
}

function colourBy(value) {
  mode = value;
  const { ratio, advantage, entropy } = data.scales;
  const missing = mode !== "none" && !data.scales[mode];
  const legend = {
    none: [],
    ratio: [
      ...[swatch("--less"), `less likely after the update, full at ×${number(Math.exp(-ratio), 3)}`],
      ...[swatch("--more"), `more likely, full at ×${number(Math.exp(ratio), 3)}`],
    ],
    advantage: [
      ...[swatch("--less"), `negative, full at ${signed(-advantage)}`],
      ...[swatch("--more"), `positive, full at ${signed(advantage)}`],
    ],
    entropy: [swatch("--more"), `full at ${number(entropy, 3)} nats`],
  }[mode];
  const why = `The ${mode} of tokens was not recorded, or is ${mode === "ratio" ? 1 : 0} everywhere.`;
  $("legend").replaceChildren(...(missing ? [why] : legend));
  for (const card of document.querySelectorAll(".turn")) paint(card);
}

function tokenNumbers(turn, i) {
  const at = (name) => turn[name]?.[i];
  const [old, now, ref] = [at("old_logprobs"), at("new_logprobs"), at("ref_logprobs")];
  const lines = [JSON.stringify(at("tokens") ?? "token") + (known(at("ids")) ? ` (id ${at("ids")})` : "")];
  if (known(old) && known(now)) lines.push(`ratio ${number(Math.exp(now - old), 4)}`);
  if (known(old)) lines.push(`log-probability ${number(old, 4)}${known(now) ? ` → ${number(now, 4)}` : ""}`);
  if (known(ref)) lines.push(`reference ${number(ref, 4)}`);
  if (known(at("entropies"))) lines.push(`entropy ${number(at("entropies"), 4)}`);
  if (known(turn.fields.advantage)) lines.push(`advantage ${signed(turn.fields.advantage)}`);
  return lines.join("\n");
}

function showTip(span) {
  const tip = $("tip");
  tip.textContent = tokenNumbers(span.closest(".turn").source.turn, Number(span.dataset.i));
  tip.hidden = false;
  const box = span.getBoundingClientRect();
  const top = box.bottom + 8 + tip.offsetHeight > innerHeight ? box.top - 8 - tip.offsetHeight : box.bottom + 8;
  tip.style.top = `${Math.max(4, top)}px`;
  tip.style.left = `${Math.max(4, Math.min(box.left, innerWidth - tip.offsetWidth - 4))}px`;
}

function hideTip() {
  $("tip").hidden = true;
  for (const span of document.querySelectorAll(".tokens .at")) span.classList.remove("at");
}

function moveInTokens(event) {
  const box = event.target.closest(".tokens");
  if (event.key === "Escape") hideTip();
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!box || !step) return;
  event.preventDefault();
  const at = box.querySelector(".at");
  const next = box.children[at ? Number(at.dataset.i) + step : 0];
  if (!next) return;
  hideTip();
  next.classList.add("at");
  next.scrollIntoView({ block: "nearest" });
  showTip(next);
}

// ---- the filter's effect

function applyFilter() {
  const text = $("filter").value.trim();
  try {
    holds = text ? parse(text) : null;
  } catch (error) {
    $("filter").setAttribute("aria-invalid", true);
    $("found").textContent = error.message;
    return;
  }
  $("filter").removeAttribute("aria-invalid");
  let [turns, episodes, best] = [0, 0, null];
  for (const button of $("groups").querySelectorAll("button")) {
    const members = data.groups[Number(button.dataset.g)];
    const counts = holds ? members.map((m) => m.turns.filter((turn) => holds(m, turn)).length) : [];
    const count = counts.reduce((a, b) => a + b, 0);
    turns += count;
    episodes += counts.filter(Boolean).length;
    button.parentElement.hidden = Boolean(holds) && !count;
    button.querySelector(".matches").textContent = count ? `${counted(count, "turn")} found` : "";
    if (!button.parentElement.hidden && best === null) best = Number(button.dataset.g);
  }
  $("found").textContent = holds ? `${counted(turns, "turn")} of ${counted(episodes, "episode")}` : "";
  const visible = shown !== null && !$("groups").children[shown].hidden;
  showGroup(visible ? shown : best);
}

// ---- start

let data = null;
let shown = null;
let holds = null;
let mode = "none";

async function start() {
  data = await unpack($("data").textContent);
  listGroups();
  const asked = Number(location.hash.slice(1));
  await showGroup(data.groups.length ? (asked in data.groups ? asked : 0) : null);
  $("groups").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) showGroup(Number(button.dataset.g));
  });
  $("groups").addEventListener("keydown", moveInList);
  $("tools").addEventListener("submit", (event) => event.preventDefault());
  $("filter").addEventListener("input", applyFilter);
  for (const radio of document.querySelectorAll("[name=colour]")) {
    radio.addEventListener("change", () => colourBy(radio.value));
  }
  $("group").addEventListener("mouseover", (event) => {
    const span = event.target.closest(".tokens span");
    if (span) showTip(span);
    else hideTip();
  });
  $("group").addEventListener("keydown", moveInTokens);
  $("group").addEventListener("focusout", hideTip);
}

start().catch((error) => {
  $("group").textContent = `The page cannot show its episodes: ${error.message}`;
});
