// Tells gt what opencode does. Written anew by gt at every start: changes are lost.
import { spawn } from "node:child_process"

const GT = "{gt}"

// One call after another, so that gt hears of everything in its order; opencode waits for none.
let last = Promise.resolve()
const call = (event, report) => new Promise((done) => {
  try {
    const child = spawn(GT, ["signal", event], { stdio: ["pipe", "ignore", "ignore"] })
    const timer = setTimeout(() => { child.kill("SIGKILL"); done() }, 3000)
    const end = () => { clearTimeout(timer); done() }
    child.on("error", end)
    child.on("exit", end)
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(report))
  } catch { done() }
})
const signal = (event, report) => { last = last.then(() => call(event, report)) }

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

export default async () => ({
  event: async ({ event }) => { events[event.type]?.(event.properties) },
  "chat.message": async (input, output) => {
    if (children.has(input.sessionID)) return
    failed = false
    const typed = output.parts.filter((part) => part.type === "text" && !part.synthetic)
    signal("prompt", { session_id: input.sessionID, prompt: typed.map((part) => part.text).join("\n") })
  },
})
