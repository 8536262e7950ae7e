//! The table of operations.

use super::AccessScope::{self, Admin, Read, Talk, Work};
use super::AnswerShape::{Document, List, Other, Single};
use super::HttpMethod::{self, Delete, Get, Patch, Post, Put};
use super::ParameterKind::{Boolean, Choice, Integer, Text, Texts};
use super::ParameterUse::{Flag, Option as Long, Positional, Service};
use super::{
    Action, AnswerShape, Operation, OperationParameter, ParameterKind, ParameterPlace, ParameterUse,
};
use crate::capability::Capability;

const fn parameter(
    place: ParameterPlace,
    name: &'static str,
    kind: ParameterKind,
    used_as: ParameterUse,
    about: &'static str,
) -> OperationParameter {
    OperationParameter {
        name,
        place,
        kind,
        is_required: false,
        used_as,
        about,
    }
}

/// A part of the path.
const fn path(
    name: &'static str,
    used_as: ParameterUse,
    about: &'static str,
) -> OperationParameter {
    needed(parameter(ParameterPlace::Path, name, Text, used_as, about))
}

const fn query(
    name: &'static str,
    kind: ParameterKind,
    used_as: ParameterUse,
    about: &'static str,
) -> OperationParameter {
    parameter(ParameterPlace::Query, name, kind, used_as, about)
}

const fn body(
    name: &'static str,
    kind: ParameterKind,
    used_as: ParameterUse,
    about: &'static str,
) -> OperationParameter {
    parameter(ParameterPlace::Body, name, kind, used_as, about)
}

const fn needed(parameter: OperationParameter) -> OperationParameter {
    OperationParameter {
        is_required: true,
        ..parameter
    }
}

const COUNT: ParameterKind = Integer { min: 1, max: 500 };
const PRIORITY: ParameterKind = Integer { min: 0, max: 4 };
const CURSOR: ParameterKind = Integer {
    min: 0,
    max: i64::MAX as u64,
};

const LIMIT: OperationParameter = query(
    "limit",
    COUNT,
    Service,
    "Maximum number of elements; 100 without it",
);
const PAGE: OperationParameter = query(
    "page",
    Text,
    Service,
    "The page that the header Link of the previous page names",
);
const AFTER: OperationParameter = query(
    "after",
    CURSOR,
    Service,
    "Only events after the one with this number; without it, the newest events",
);
const EVENT_TYPE: OperationParameter = query(
    "type",
    Text,
    Service,
    "Only these types, separated by commas, such as nudge,session_*",
);
const ABOUT: OperationParameter = query(
    "about",
    Text,
    Service,
    "Only events about this agent or work item",
);
const AGENT: OperationParameter = path(
    "agent",
    Positional,
    "The agent: an address, with %2F for each slash, or a short form of it",
);
const OF_AGENT: OperationParameter = path(
    "agent",
    Long("--agent"),
    "The agent: an address, with %2F for each slash, or a short form of it",
);
const ID: OperationParameter = path("id", Positional, "The id, or a prefix of it");
const SLUG: OperationParameter = path(
    "slug",
    Positional,
    "The slug of a standalone agent: agent/SLUG is its address",
);
const STATUSES: ParameterKind = Choice(&[
    "open",
    "hooked",
    "in_progress",
    "blocked",
    "pinned",
    "closed",
]);
const CHANGED_STATUSES: ParameterKind = Choice(&["open", "in_progress", "blocked", "pinned"]);
const SEVERITIES: ParameterKind = Choice(&["low", "medium", "high", "critical"]);
const STARTED: [OperationParameter; 3] = [
    body("harness", Text, Long("--harness"), "The agent program"),
    body(
        "model",
        Text,
        Long("--model"),
        "The model, by the agent program's own name for it",
    ),
    body(
        "instructions",
        Text,
        Long("--instructions"),
        "Appended to the first prompt",
    ),
];

struct CommandRow(
    &'static str,
    HttpMethod,
    &'static str,
    AccessScope,
    Option<Capability>,
    &'static [&'static str],
);

/// A row that runs a command.
const fn command(
    CommandRow(name, method, path, scope, capability, words): CommandRow,
    answer: AnswerShape,
    parameters: &'static [OperationParameter],
    about: &'static str,
) -> Operation {
    Operation {
        name,
        method,
        path,
        scope: Some(scope),
        capability,
        action: Action::Command(words),
        parameters,
        answer,
        about,
    }
}

/// A row that the service itself performs.
const fn service(
    (name, method, path): (&'static str, HttpMethod, &'static str),
    scope: Option<AccessScope>,
    action: Action,
    answer: AnswerShape,
    parameters: &'static [OperationParameter],
    about: &'static str,
) -> Operation {
    Operation {
        name,
        method,
        path,
        scope,
        capability: None,
        action,
        parameters,
        answer,
        about,
    }
}

use Capability as C;

/// All operations, one row each.
#[rustfmt::skip]
pub const TABLE: &[Operation] = &[
    // The service.
    service(("openapi", Get, "/api/v1/openapi.json"), Some(Read), Action::OpenApi, Document, &[], "Returns this document."),
    service(("caller", Get, "/api/v1/caller"), Some(Read), Action::Caller, Document, &[], "Returns who calls, and the scope."),
    service(("login", Post, "/api/v1/login"), None, Action::Login, Document, &[
        needed(body("code", Text, Service, "The code of a login link, which is valid once")),
        body("name", Text, Service, "A name for the device"),
    ], "Exchanges the code of a login link for a session of this device."),
    service(("logout", Post, "/api/v1/logout"), Some(Read), Action::Logout, Document, &[], "Ends the session of this device."),
    service(("page", Get, "/"), None, Action::PageFile, Other, &[], "Returns the page."),
    service(("page_script", Get, "/page.js"), None, Action::PageFile, Other, &[], "Returns the script of the page."),
    service(("page_style", Get, "/page.css"), None, Action::PageFile, Other, &[], "Returns the style of the page."),

    // Events.
    service(("events_list", Get, "/api/v1/events"), Some(Read), Action::EventPage, Document,
        &[AFTER, LIMIT, EVENT_TYPE, ABOUT], "Returns a page of events, the oldest first."),
    service(("events_stream", Get, "/api/v1/events/stream"), Some(Read), Action::EventStream, Other,
        &[AFTER, EVENT_TYPE, ABOUT], "Sends events as they are written (server-sent events)."),
    service(("websocket", Get, "/api/v1/ws"), Some(Read), Action::WebSocket, Other,
        &[AFTER, EVENT_TYPE, ABOUT], "Sends events as they are written (WebSocket)."),

    // Agents.
    command(CommandRow("status", Get, "/api/v1/status", Read, None, &["status"]), Document, &[], "Returns the status of the town."),
    command(CommandRow("agents_list", Get, "/api/v1/agents", Read, None, &["agents", "--all"]), List("agent"), &[
        LIMIT, PAGE,
        query("stopped", Boolean, Flag("--stopped"), "Include agents that do not run"),
        query("rig", Text, Long("--rig"), "Only this rig's"),
        query("role", Text, Long("--role"), "Only this role's"),
    ], "Lists the agents that run."),
    command(CommandRow("agents_show", Get, "/api/v1/agents/{agent}", Read, None, &["agents", "--all"]), Single, &[AGENT], "Returns an agent, even if it does not run."),
    command(CommandRow("agents_screen", Get, "/api/v1/agents/{agent}/screen", Read, None, &["peek"]), Document, &[
        AGENT,
        query("lines", Integer { min: 1, max: 50_000 }, Long("--lines"), "The last lines, scrollback included; without it, the visible screen"),
        query("ansi", Boolean, Flag("--ansi"), "Keep colours"),
    ], "Returns the screen of an agent."),
    command(CommandRow("agents_question", Get, "/api/v1/agents/{agent}/question", Read, Some(C::Answer), &["answer"]), Document, &[AGENT],
        "Returns the question that an agent asks, with its options and its fingerprint."),
    command(CommandRow("agents_answer", Post, "/api/v1/agents/{agent}/answer", Talk, Some(C::Answer), &["answer"]), Document, &[
        AGENT,
        needed(body("choice", Text, Positional, "The number of an option, yes, no, or words of the option")),
        needed(body("expect", Text, Long("--expect"), "The fingerprint of the question: another question is not answered")),
    ], "Answers the question of an agent."),
    command(CommandRow("agents_messages", Get, "/api/v1/agents/{agent}/messages", Read, Some(C::Message), &["nudge", "--list"]), Document, &[AGENT],
        "Lists the messages that wait for an agent."),
    command(CommandRow("agents_nudge", Post, "/api/v1/agents/{agent}/messages", Talk, Some(C::Message), &["nudge"]), Document, &[
        AGENT,
        needed(body("message", Text, Positional, "The message, in one line or several")),
        body("mode", Choice(&["immediate", "queue", "wait-idle"]), Long("--mode"), "When to deliver it: now, in the background, or when the agent is idle"),
        body("priority", Choice(&["normal", "urgent"]), Long("--priority"), "Urgent messages are delivered first"),
    ], "Sends a message to an agent; 202 if it waits in the queue although immediate delivery was asked for."),
    command(CommandRow("agents_keys", Post, "/api/v1/agents/{agent}/keys", Admin, Some(C::Keys), &["keys"]), Document, &[
        AGENT,
        needed(body("keys", Texts, Positional, "The keys in tmux's names, such as Escape, Enter, Up or C-c")),
    ], "Presses keys in the pane of an agent, without reading its screen first."),
    command(CommandRow("agents_start", Post, "/api/v1/agents/{agent}/start", Work, Some(C::Sling), &["start"]), Single,
        &[AGENT, STARTED[0], STARTED[1], STARTED[2]], "Starts an agent."),
    command(CommandRow("agents_stop", Post, "/api/v1/agents/{agent}/stop", Work, Some(C::Stop), &["stop"]), Single, &[
        AGENT,
        body("force", Boolean, Flag("--force"), "Do not ask the agent to quit first"),
    ], "Stops an agent."),
    command(CommandRow("agents_interrupt", Post, "/api/v1/agents/{agent}/interrupt", Work, Some(C::Stop), &["interrupt"]), Single, &[AGENT],
        "Stops the turn of an agent, which keeps running."),
    command(CommandRow("hook_show", Get, "/api/v1/agents/{agent}/hook", Read, Some(C::Hook), &["hook"]), Document, &[OF_AGENT],
        "Returns the work item on the hook of an agent, or null."),
    command(CommandRow("hook_set", Put, "/api/v1/agents/{agent}/hook", Work, Some(C::Hook), &["hook"]), Document, &[
        OF_AGENT,
        needed(body("item", Text, Positional, "The work item to put there")),
    ], "Puts a work item on the hook of an agent."),
    command(CommandRow("hook_clear", Delete, "/api/v1/agents/{agent}/hook", Work, Some(C::Hook), &["unhook"]), Document, &[OF_AGENT],
        "Takes the work item off the hook of an agent."),

    // Containers of standalone agents.
    command(CommandRow("containers_list", Get, "/api/v1/containers", Read, None, &["agents", "--all", "--stopped", "--role=agent"]), List("agent"), &[LIMIT, PAGE],
        "Lists the standalone agents, also those that do not run."),
    command(CommandRow("containers_create", Post, "/api/v1/containers", Admin, Some(C::Remove), &["agent", "new"]), Document, &[
        needed(body("slug", Text, Positional, "The slug: agent/SLUG is its address, agent_SLUG its container")),
        body("harness", Text, Long("--harness"), "Its agent program"),
        body("prompt", Text, Long("--prompt"), "Appended to its first prompt"),
    ], "Registers a standalone agent, without starting it."),
    command(CommandRow("containers_start", Post, "/api/v1/containers/{slug}/start", Work, Some(C::Sling), &["agent", "start"]), Single,
        &[SLUG, STARTED[0], STARTED[1], STARTED[2]], "Starts a standalone agent."),
    command(CommandRow("containers_stop", Post, "/api/v1/containers/{slug}/stop", Work, Some(C::Stop), &["agent", "stop"]), Single, &[
        SLUG,
        body("force", Boolean, Flag("--force"), "Do not ask the agent to quit first"),
    ], "Stops a standalone agent."),
    command(CommandRow("containers_reset", Post, "/api/v1/containers/{slug}/reset", Work, Some(C::Stop), &["agent", "reset"]), Single, &[SLUG],
        "Stops a standalone agent if it runs, and starts it with a new conversation."),
    command(CommandRow("containers_delete", Delete, "/api/v1/containers/{slug}", Admin, Some(C::Remove), &["agent", "rm"]), Document, &[SLUG],
        "Stops a standalone agent and removes it."),

    // Sessions.
    command(CommandRow("sessions_list", Get, "/api/v1/sessions", Read, None, &["sessions", "list", "--limit=10000"]), List("id"), &[
        LIMIT, PAGE,
        query("agent", Text, Long("--agent"), "Only this agent's"),
        query("rig", Text, Long("--rig"), "Only this rig's"),
        query("role", Text, Long("--role"), "Only this role's"),
        query("work", Text, Long("--work"), "Only sessions that worked on this item"),
        query("chain", Text, Long("--chain"), "Only sessions of this chain"),
        query("status", Choice(&["running", "stopped"]), Long("--status"), "Only sessions with this status"),
        query("since", Text, Long("--since"), "Only sessions that began since: 24h, yesterday, 2026-01-17"),
    ], "Lists sessions, the newest first."),
    command(CommandRow("sessions_show", Get, "/api/v1/sessions/{id}", Read, None, &["sessions", "show"]), Document, &[ID], "Returns a session in full."),
    command(CommandRow("sessions_chain", Get, "/api/v1/chains/{id}", Read, None, &["sessions", "chain"]), Document, &[
        path("id", Positional, "A session, a chain, or a work item"),
    ], "Returns the sessions that continued each other's work."),

    // Work.
    command(CommandRow("work_list", Get, "/api/v1/work", Read, None, &["work", "list", "--limit=10000"]), List("id"), &[
        LIMIT, PAGE,
        query("status", STATUSES, Long("--status"), "Only items with this status"),
        query("all", Boolean, Flag("--all"), "Include closed items"),
        query("rig", Text, Long("--rig"), "Only this rig's; `hq` stands for the town itself"),
        query("agent", Text, Long("--agent"), "Only items of this agent"),
        query("type", Text, Long("--type"), "Only items of this type"),
        query("label", Text, Long("--label"), "Only items with this label"),
        query("parent", Text, Long("--parent"), "Only the parts of this item"),
        query("priority", PRIORITY, Long("--priority"), "Only items of this priority"),
    ], "Lists work items."),
    command(CommandRow("work_create", Post, "/api/v1/work", Work, Some(C::CreateWork), &["work", "create"]), Document, &[
        needed(body("title", Text, Positional, "Title, in one line")),
        body("description", Text, Long("--description"), "The description"),
        body("rig", Text, Long("--rig"), "The rig it belongs to, or `hq` for the town"),
        body("type", Text, Long("--type"), "Kind of work: task, bug, feature, epic, chore, …"),
        body("priority", PRIORITY, Long("--priority"), "From 0, the most urgent, to 4"),
        body("agent", Text, Long("--agent"), "The assignee"),
        body("labels", Texts, Long("--label"), "Its labels"),
        body("parent", Text, Long("--parent"), "The item it is a part of"),
        body("deps", Texts, Long("--dep"), "Items that must be closed before it"),
    ], "Creates a work item."),
    command(CommandRow("work_show", Get, "/api/v1/work/{id}", Read, None, &["work", "show"]), Document, &[ID], "Returns a work item in full."),
    command(CommandRow("work_update", Patch, "/api/v1/work/{id}", Work, Some(C::Work), &["work", "update"]), Document, &[
        ID,
        body("title", Text, Long("--title"), "Title, in one line"),
        body("description", Text, Long("--description"), "The description"),
        body("type", Text, Long("--type"), "Kind of work: task, bug, feature, epic, chore, …"),
        body("priority", PRIORITY, Long("--priority"), "From 0, the most urgent, to 4"),
        body("status", CHANGED_STATUSES, Long("--status"), "Its new status"),
        body("agent", Text, Long("--agent"), "The assignee; an empty value removes it"),
        body("notes", Text, Long("--notes"), "New notes, in place of the present ones"),
        body("add_labels", Texts, Long("--add-label"), "Labels that it gets"),
        body("remove_labels", Texts, Long("--remove-label"), "Labels that it loses"),
    ], "Changes a work item."),
    command(CommandRow("work_close", Post, "/api/v1/work/{id}/close", Work, Some(C::Work), &["work", "close"]), Document, &[
        ID,
        body("reason", Text, Long("--reason"), "The reason"),
    ], "Closes a work item."),
    command(CommandRow("work_reopen", Post, "/api/v1/work/{id}/reopen", Work, Some(C::Work), &["work", "reopen"]), Document, &[ID], "Opens a closed work item again."),

    // Mail.
    command(CommandRow("mail_inbox", Get, "/api/v1/mail", Read, Some(C::Mail), &["mail", "inbox", "--limit=10000"]), List("id"), &[
        LIMIT, PAGE,
        query("agent", Text, Long("--agent"), "The agent; without it, the person"),
        query("all", Boolean, Flag("--all"), "Include archived messages"),
        query("unread", Boolean, Flag("--unread"), "Only unread messages"),
    ], "Lists received messages."),
    command(CommandRow("mail_read", Get, "/api/v1/mail/{id}", Read, Some(C::Mail), &["mail", "read", "--keep-unread"]), Document, &[ID],
        "Returns a message, without marking it as read."),
    command(CommandRow("mail_send", Post, "/api/v1/mail", Talk, Some(C::Message), &["mail", "send"]), Document, &[
        needed(body("to", Texts, Positional, "The recipients: agents, `human`, `RIG/*`, `@crew`, … or `@all`")),
        needed(body("subject", Text, Long("--subject"), "Subject, in one line")),
        needed(body("message", Text, Long("--message"), "Text of the message")),
        body("priority", PRIORITY, Long("--priority"), "From 0, the most urgent, to 4"),
        body("reply_to", Text, Long("--reply-to"), "The message that it answers"),
    ], "Sends mail."),
    command(CommandRow("mail_archive", Post, "/api/v1/mail/{id}/archive", Talk, Some(C::Mail), &["mail", "archive"]), Document, &[ID], "Archives a message."),

    // The merge queue.
    command(CommandRow("merges_list", Get, "/api/v1/merges", Read, None, &["mq", "list"]), List("id"), &[
        LIMIT, PAGE,
        query("rig", Text, Long("--rig"), "Only this rig's"),
        query("all", Boolean, Flag("--all"), "Include merged, rejected and withdrawn entries"),
    ], "Lists the entries of the merge queue, in the order of merging."),
    command(CommandRow("merges_show", Get, "/api/v1/merges/{id}", Read, None, &["mq", "status"]), Document, &[ID], "Returns an entry of the merge queue."),
    command(CommandRow("merges_run", Post, "/api/v1/merges/run", Work, Some(C::Merge), &["mq", "run"]), Document, &[
        body("rigs", Texts, Positional, "Rigs, or entries of the queue; without them, all rigs"),
        body("once", Boolean, Flag("--once"), "Merge at most one entry of each rig"),
    ], "Merges the waiting entries."),
    command(CommandRow("merges_retry", Post, "/api/v1/merges/{id}/retry", Work, Some(C::Merge), &["mq", "retry"]), Document, &[ID],
        "Queues a conflicting or failed entry again."),

    // Escalations.
    command(CommandRow("escalations_list", Get, "/api/v1/escalations", Read, None, &["escalate", "list"]), List("id"), &[
        LIMIT, PAGE,
        query("all", Boolean, Flag("--all"), "Include closed ones"),
        query("severity", SEVERITIES, Long("--severity"), "Only those of at least this severity"),
        query("agent", Text, Long("--agent"), "Only those about this agent"),
    ], "Lists escalations, the most urgent first."),
    command(CommandRow("escalations_show", Get, "/api/v1/escalations/{id}", Read, None, &["escalate", "show"]), Document, &[ID], "Returns an escalation in full."),
    command(CommandRow("escalations_ack", Post, "/api/v1/escalations/{id}/ack", Work, Some(C::Answer), &["escalate", "ack"]), Document, &[ID],
        "Acknowledges an escalation: it stays open and is not raised again."),
    command(CommandRow("escalations_close", Post, "/api/v1/escalations/{id}/close", Work, Some(C::Answer), &["escalate", "close"]), Document, &[
        ID,
        body("reason", Text, Long("--reason"), "How it was resolved"),
    ], "Closes an escalation."),

    // The town.
    command(CommandRow("costs", Get, "/api/v1/costs", Read, None, &["costs"]), Document, &[
        query("by", Choice(&["day", "item", "agent", "model", "rig"]), Long("--by"), "Group the rows by this"),
        query("since", Text, Long("--since"), "Only since the day of this time: 7d, yesterday, 2026-01-17"),
    ], "Returns tokens and their price."),
    command(CommandRow("settings_list", Get, "/api/v1/settings", Admin, None, &["config", "list"]), Document, &[], "Returns the settings that are in effect."),
    command(CommandRow("doctor", Get, "/api/v1/doctor", Read, None, &["doctor"]), Document, &[], "Checks the town; changes nothing."),
];
