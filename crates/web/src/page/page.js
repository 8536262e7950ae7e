"use strict";

const KEY = "gt-device";
const MOST_EVENTS = 200;
const element = (id) => document.getElementById(id);

let cursor = null;
let socket = null;
let retry = 0;
let refreshTimer = null;
let isLeaving = false;
const answering = new Map();

function node(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function show(state, text) {
  const connection = element("connection");
  connection.dataset.state = state;
  if (connection.textContent !== text) connection.textContent = text;
}

function notice(text) {
  element("notice").textContent = text ?? "";
  element("notice").hidden = !text;
}

class Failure extends Error {
  constructor(status, problem) {
    super(problem.detail ?? `the request failed with the status ${status}`);
    this.status = status;
    this.hints = problem.hints ?? [];
  }
}

async function call(path, method = "GET", body = undefined, key = undefined) {
  const headers = { "GT-Device": localStorage.getItem(KEY) ?? "" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  const response = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
  const document = await response.json().catch(() => ({}));
  if (!response.ok) throw new Failure(response.status, document);
  return document;
}

async function login() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (!code) return;
  // The code is in no later history entry, referrer or bookmark.
  history.replaceState(null, "", "/");
  const name = `${navigator.platform || "browser"} ${new Date().toISOString().slice(0, 10)}`;
  try {
    const device = await call("/api/v1/login", "POST", { code, name });
    localStorage.setItem(KEY, device.key);
  } catch (failure) {
    if (!localStorage.getItem(KEY)) throw failure;
  }
}

function leave(text) {
  isLeaving = true;
  socket?.close();
  show("out", "logged out");
  element("logout").hidden = true;
  element("questions").hidden = true;
  element("agents").replaceChildren();
  element("events").replaceChildren();
  notice(text);
}

const LOGGED_OUT = "This browser is not logged in. Run gt dashboard on the machine of the town, and open the link that it prints.";

function age(time) {
  const seconds = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 60) return `${Math.floor(seconds)}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86400)}d`;
}

const TONES = {
  busy: "good", done: "good", waiting: "warn", limited: "warn", starting: "warn",
  initializing: "warn", error: "bad", crashed: "bad",
};

function agentRow(agent) {
  const state = node("span", { className: "state" }, `${agent.state} ${age(agent.state_since ?? agent.created_at)}`.trim());
  state.dataset.tone = TONES[agent.state] ?? "";
  const what = [agent.state_reason, agent.hook].filter(Boolean).join(" · ");
  const row = node("li", {}, node("span", { className: "name" }, agent.agent), state);
  if (what) row.append(node("span", { className: "what" }, what));
  return row;
}

async function refresh() {
  try {
    const agents = await call("/api/v1/agents");
    element("agents").replaceChildren(...agents.map(agentRow));
    element("no-agents").hidden = agents.length > 0;
    const waiting = agents.filter((agent) => agent.state === "waiting");
    await refreshQuestions(waiting.map((agent) => agent.agent));
    document.title = waiting.length ? `(${waiting.length}) gt` : "gt";
  } catch (failure) {
    if (failure.status === 401) leave(LOGGED_OUT);
  }
}

async function refreshQuestions(agents) {
  const asked = await Promise.all(agents.map(async (agent) => {
    const path = `/api/v1/agents/${encodeURIComponent(agent)}/question`;
    // The agent may have been answered meanwhile.
    return call(path).catch(() => null);
  }));
  const questions = asked.filter(Boolean);
  const list = element("question-list");
  const before = new Map([...list.children].map((card) => [card.dataset.id, card]));
  const cards = questions.map((question) => {
    const id = `${question.agent} ${question.fingerprint}`;
    return before.get(id) ?? questionCard(question, id);
  });
  // A card that shows an answer stays until the next question.
  const isSame = cards.length === list.children.length && cards.every((card, at) => list.children[at] === card);
  if (!isSame) list.replaceChildren(...cards);
  element("questions").hidden = cards.length === 0;
}

function questionCard(question, id) {
  const result = node("p", { className: "result" });
  result.setAttribute("role", "status");
  const options = node("div", { className: "options" });
  question.options.forEach((option, at) => {
    const label = question.labels[at];
    const button = node("button", { type: "button" }, `${label} ${option}`.trim());
    if (question.marked === at) button.dataset.marked = "";
    // An option without a number is named by its text.
    const choice = /^\d+\.$/.test(label) ? label.slice(0, -1) : option;
    button.addEventListener("click", () => answer(question, choice, options, result));
    options.append(button);
  });
  const card = node("article", { className: "question" },
    node("span", { className: "name" }, question.agent), node("pre", {}, question.question), options, result);
  card.dataset.id = id;
  return card;
}

async function answer(question, choice, options, result) {
  const buttons = [...options.children];
  buttons.forEach((button) => { button.disabled = true; });
  result.textContent = "Answering…";
  // A repeated click or a retry after a lost connection is the same request.
  const id = `${question.agent} ${question.fingerprint} ${choice}`;
  if (!answering.has(id)) answering.set(id, crypto.randomUUID());
  const path = `/api/v1/agents/${encodeURIComponent(question.agent)}/answer`;
  try {
    const done = await call(path, "POST", { choice, expect: question.fingerprint }, answering.get(id));
    result.textContent = `Answered: ${done.answer}`;
  } catch (failure) {
    // With a status the outcome is known, and another attempt is another request.
    if (failure.status) answering.delete(id);
    buttons.forEach((button) => { button.disabled = false; });
    result.textContent = [failure.message, ...(failure.hints ?? [])].join(" – ");
  }
  refreshSoon();
}

function refreshSoon() {
  clearTimeout(refreshTimer);
  refreshTimer = setTimeout(refresh, 250);
}

function eventRow(event) {
  const payload = event.payload ?? {};
  const details = ["target", "bead", "reason", "subject", "outcome", "operation"].map((name) => payload[name]);
  const at = new Date(event.ts);
  const time = node("time", { dateTime: event.ts }, Number.isNaN(at.getTime()) ? "" : at.toLocaleTimeString());
  const text = [event.actor, ...details.filter((detail) => typeof detail === "string")].join(" · ");
  const line = node("span", { className: "line" }, node("span", { className: "kind" }, event.type), ` ${text}`);
  return node("li", {}, time, line);
}

function addRow(row) {
  const list = element("events");
  list.prepend(row);
  while (list.children.length > MOST_EVENTS) list.lastElementChild.remove();
}

function receive(message) {
  if (message.type === "gap") {
    const missing = message.gap.missing ?? "Some";
    addRow(node("li", {}, node("span", { className: "gap" }, `${missing} earlier events are no longer in the log`)));
  } else if (message.type === "event") {
    cursor = message.event.seq ?? cursor;
    addRow(eventRow(message.event));
  }
  refreshSoon();
}

async function connect() {
  if (isLeaving) return;
  try {
    if (cursor === null) {
      const page = await call("/api/v1/events?limit=50");
      cursor = page.next;
      element("events").replaceChildren(...page.events.map(eventRow).reverse());
    }
  } catch (failure) {
    if (failure.status === 401) return leave(LOGGED_OUT);
    return reconnect();
  }
  const key = localStorage.getItem(KEY) ?? "";
  socket = new WebSocket(`ws://${location.host}/api/v1/ws?after=${cursor}`, ["gt", `gt-device.${key}`]);
  socket.addEventListener("open", () => { retry = 0; show("live", "live"); refresh(); });
  socket.addEventListener("message", (message) => receive(JSON.parse(message.data)));
  socket.addEventListener("close", reconnect);
}

function reconnect() {
  if (isLeaving) return;
  retry += 1;
  show("waiting", "reconnecting");
  setTimeout(async () => {
    try {
      await call("/api/v1/caller");
    } catch (failure) {
      if (failure.status === 401) return leave(LOGGED_OUT);
    }
    connect();
  }, Math.min(15000, 250 * 2 ** retry));
}

async function begin() {
  try {
    await login();
    const caller = await call("/api/v1/caller");
    element("town").textContent = `${caller.credential} · ${caller.scope}`;
    element("logout").hidden = false;
  } catch (failure) {
    return leave(failure.status === 401 ? LOGGED_OUT : failure.message);
  }
  element("logout").addEventListener("click", async () => {
    await call("/api/v1/logout", "POST").catch(() => null);
    localStorage.removeItem(KEY);
    leave("This browser is logged out.");
  });
  await refresh();
  await connect();
  // Ages of states.
  setInterval(() => { if (!document.hidden && !isLeaving) refresh(); }, 30000);
}

begin();
