// Tells gt what opencode does. Written anew by gt at every start: changes are lost.
import { spawn } from "node:child_process"

const GT = "{gt}"
// Arguments of the call of gt before a context is compacted, or null.
const HANDOFF = "{handoff}"
const BEGAN = Date.now()
// opencode waits for gt no longer than this.
const TIMEOUT = 3000

// Calls gt and gives what it printed.
const run = (args, report, kill = true) => new Promise((done) => {
  try {
    const child = spawn(GT, args, { stdio: ["pipe", "pipe", "ignore"] })
    let said = ""
    const timer = setTimeout(() => { if (kill) child.kill("SIGKILL"); done("") }, TIMEOUT)
    const end = () => { clearTimeout(timer); done(said) }
    child.on("error", end)
    child.on("close", end)
    child.stdout.on("data", (bytes) => { said += bytes })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(report))
  } catch { done("") }
})

// One call after another, so that gt hears of everything in its order; opencode waits for none.
let last = Promise.resolve()
const signal = (event, report) => { last = last.then(() => run(["signal", event], report)) }

// Subagents are sessions of their own: what they do is not the end of the agent's turn.
const children = new Set()
let failed = false

const events = {
  "session.created": ({ info }) => { if (info.parentID) children.add(info.id) },
  "permission.asked": (it) => signal("permission", {
    session_id: it.sessionID,
    tool_name: it.permission,
    tool_input: { command: it.metadata?.command ?? it.patterns?.[0] },
  }),
  "question.asked": (it) => signal("notification", {
    session_id: it.sessionID,
    notification_type: "elicitation_dialog",
    message: it.questions?.[0]?.question ?? "asks something",
  }),
  "permission.replied": (it) => signal("tool-start", { session_id: it.sessionID, tool_name: "goes on" }),
  "question.replied": (it) => signal("tool-start", { session_id: it.sessionID, tool_name: "goes on" }),
  "session.status": (it) => { if (it.status?.type === "busy") failed = false },
  "session.error": (it) => {
    if (children.has(it.sessionID)) return
    failed = true
    if (it.error?.name === "MessageAbortedError") return signal("interrupt", { session_id: it.sessionID })
    signal("stop-failure", { session_id: it.sessionID, error: it.error?.data?.message ?? it.error?.name })
  },
  "session.idle": (it) => {
    // After an error it comes as well, and would wipe it out.
    if (children.has(it.sessionID) || failed) return
    signal("stop", { session_id: it.sessionID })
  },
}

// Sessions that were told how things stand; those whose context was compacted are told again.
const told = new Set()
const compacted = new Set()
events["session.compacted"] = (it) => { if (told.delete(it.sessionID)) compacted.add(it.sessionID) }

// Returns the context that gt gives a session before its first message in this process, or null after
// the timeout.
const prime = async (client, id) => {
  const late = new Promise((done) => setTimeout(done, TIMEOUT, null))
  const asked = client.session.get({ path: { id } }).then((it) => it.data, () => null)
  const info = await Promise.race([asked, late])
  if (info?.parentID) { children.add(id); return "" }
  const source = compacted.delete(id) ? "compact" : info?.time?.created < BEGAN ? "resume" : "startup"
  return run(["prime", "--hook"], { session_id: id, source })
}

// Beside what was typed, as opencode puts its own reminders.
const remind = (output, words) => {
  const typed = output.parts.at(-1)
  if (!words.trim() || !typed?.id) return
  output.parts.push({
    // Parts are shown to the model in the order of their ids.
    id: typed.id.slice(0, -4) + "zzzz",
    sessionID: typed.sessionID,
    messageID: typed.messageID,
    type: "text",
    synthetic: true,
    text: `<system-reminder>\n${words.trim()}\n</system-reminder>`,
  })
}

export default async ({ client }) => ({
  event: async ({ event }) => { events[event.type]?.(event.properties) },
  "chat.message": async (input, output) => {
    const id = input.sessionID
    if (children.has(id)) return
    failed = false
    if (!told.has(id)) {
      told.add(id)
      const words = await prime(client, id)
      if (children.has(id)) return
      remind(output, words)
    }
    const typed = output.parts.filter((part) => part.type === "text" && !part.synthetic)
    signal("prompt", { session_id: id, prompt: typed.map((part) => part.text).join("\n") })
  },
  "experimental.session.compacting": async (input) => {
    if (children.has(input.sessionID)) return
    signal("compact", { session_id: input.sessionID })
    // A handoff that takes longer than the timeout continues during the compaction.
    if (HANDOFF) await run(HANDOFF, {}, false)
  },
})
