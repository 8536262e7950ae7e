//! Computes what a start needs, as data.
//!
//! [`plan`] turns a role, a preset and the caller's start options into a [`LaunchPlan`]: the argv, the
//! environment and the tags. The engine's start path carries it out. The program is executed
//! without a shell unless a shell command is configured.

use crate::beacon;
use crate::environment::{self, EnvironmentFacts};
use crate::harness::{Preset, PromptStyle};
use crate::identity::Identity;
use crate::role::RoleConfig;
use crate::sandbox::SandboxLevel;
use crate::session::SessionId;
use crate::state::{State, StateSource};
use std::collections::BTreeMap;

/// Names of the tags of a container, stored as tmux user options.
pub mod tag {
    pub const TOWN: &str = "@gt_town";
    pub const AGENT: &str = "@gt_agent";
    pub const SESSION: &str = "@gt_session";
    pub const HARNESS: &str = "@gt_harness";
    /// Model that the program was started with.
    pub const MODEL: &str = "@gt_model";
    pub const PANE: &str = "@gt_pane";
    pub const PROCESS_NAMES: &str = "@gt_process_names";
    pub const STATE: &str = "@gt_state";
    pub const STATE_SINCE: &str = "@gt_state_since";
    pub const STATE_SOURCE: &str = "@gt_state_source";
    pub const STATE_REASON: &str = "@gt_state_reason";
    pub const AUTO_RESPAWN: &str = "@gt_auto_respawn";
    pub const DEATHS: &str = "@gt_deaths";
    /// Chain of sessions that this one belongs to, identified by its first session.
    pub const CHAIN: &str = "@gt_chain";
    /// Id of the conversation in the agent program.
    pub const HARNESS_SESSION: &str = "@gt_harness_session";
    /// Fingerprint of the last prompt that the agent took.
    pub const LAST_PROMPT: &str = "@gt_last_prompt";
    /// Number of prompts that it has taken in this container.
    pub const PROMPTS: &str = "@gt_prompts";
    /// Session and conversation that last got the priming text with a prompt.
    pub const PRIMED: &str = "@gt_primed";
    /// The program runs without permission prompts.
    pub const NEVER_ASKS: &str = "@gt_never_asks";
    /// Level of its sandbox.
    pub const SANDBOX: &str = "@gt_sandbox";
    /// The program was started with a prompt that its hook has not reported yet.
    pub const FIRST_PROMPT: &str = "@gt_first_prompt";
    /// Number of tasks that the last turn left running in the background, as the hook reports.
    pub const BACKGROUND_TASKS: &str = "@gt_background_tasks";
    /// Session that is being stopped now.
    pub const LEAVING: &str = "@gt_leaving";
    /// Last reported state of a screen: the session, the state, and the time in milliseconds.
    pub const TOLD: &str = "@gt_told";
    /// On the pane of a program beside the agent: its harness, and while it is being started, the
    /// start time and the process that starts it. A separate name, because a pane's option hides
    /// the container's option of the same name while that pane is the current one.
    pub const BESIDE: &str = "@gt_beside";
    /// Last reported state of its screen, in place of [`TOLD`].
    pub const BESIDE_TOLD: &str = "@gt_beside_told";
    /// On a dev server's pane: its port; `ANSWERS` holds whether it answers, and since when.
    pub const PORT: &str = "@gt_port";
    pub const ANSWERS: &str = "@gt_answers";
    /// On a pane: the time when `gt` last typed there, or gave its program a first prompt.
    pub const TYPED: &str = "@gt_typed";
    /// On a window that is being repainted: the start in seconds since the epoch, the width before
    /// it, and the window's own size policy, if it has one.
    pub const REPAINT: &str = "@gt_repaint";
    /// Reason why nothing is typed to the agent and its state is paused, such as its budget.
    pub const HOLD: &str = "@gt_hold";
    /// Start options, for a respawn.
    pub const START: &str = "@gt_start";
    /// Account of the agent, as [`super::account_key`] names it. A listing omits long start options.
    pub const ACCOUNT: &str = "@gt_account";
    /// Id of the digest for which gt has started the agent.
    pub const DIGEST: &str = "@gt_digest";
    /// For a program that a person has started: its process, as `PID BIRTH`, and `linked` if the
    /// container is ours and only shows the person's window.
    pub const ADOPTED: &str = "@gt_adopted";
    /// For such a program: its hook has reported that it exits.
    pub const LEFT: &str = "@gt_left";
    /// Hash of the environment variables and persistent options that were last set on the
    /// container.
    pub const OPTIONS: &str = "@gt_dress";
}

/// Tags of a task's container, in addition to those of every agent.
pub mod task_tag {
    /// Id of this container's init steps.
    pub const INIT: &str = "@gt_init";
    /// The init commands are done. Scripts of the board read this tag, and so does `gt`.
    pub const INIT_DONE: &str = "@az_init_done";
    pub const OWN_INIT_DONE: &str = "@gt_init_done";
    /// Names of the background tasks that were started.
    pub const BACKGROUND: &str = "@gt_background";
    /// Commit whose merge conflicts were given to a resolver agent.
    pub const MERGE: &str = "@gt_merge";
    /// Commit in which a pause has saved uncommitted changes.
    pub const WIP: &str = "@gt_wip";
    /// While paused: fingerprint of the message whose turn was stopped.
    pub const STOPPED: &str = "@gt_stopped";
    /// Fingerprint of the message that has repeated the first prompt.
    pub const REMINDED: &str = "@gt_reminded";
    /// While being resumed: the caller that resumes it.
    pub const RESUMER: &str = "@gt_resumer";
    /// While paused: mark that recognises the input line into which the program put the message
    /// back.
    pub const PUT_BACK: &str = "@gt_put_back";
}

/// Conversation that the agent begins in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Conversation {
    /// A new one, with an id that we choose if the program allows it.
    #[default]
    New,
    Resume(String),
    Continue,
    Fork(String),
}

/// Input of [`plan`].
#[derive(Clone, Debug)]
pub struct StartRequest<'a> {
    pub identity: &'a Identity,
    pub container: &'a str,
    pub session: SessionId,
    /// Chain of sessions that it continues; `None` for the first session of a chain.
    pub chain: Option<&'a str>,
    pub work_dir: &'a str,
    pub town_root: &'a str,
    pub socket: &'a str,
    pub role: &'a RoleConfig,
    pub preset: &'a Preset,
    /// The program with its path, as found on this machine.
    pub program: &'a str,
    /// Shell command to run instead.
    pub command: Option<&'a str>,
    pub prompt: Option<&'a str>,
    pub conversation: Conversation,
    pub config_dir: Option<&'a str>,
    /// Model that the program is started with; `None` leaves it to the program.
    pub model: Option<&'a str>,
    /// Id of the digest for which gt starts the agent.
    pub digest: Option<&'a str>,
    pub sandbox: SandboxLevel,
    pub passed_env: &'a [(String, String)],
    pub extra_env: &'a [(String, String)],
    /// Arguments that make the program call our hooks.
    pub hook_args: &'a [String],
    /// Whether the program calls our hooks, by these arguments or by its environment.
    pub has_hooks: bool,
    /// Whether the caller waits for a sign of the agent before it counts as running.
    pub is_awaited: bool,
    /// Seconds since the epoch.
    pub now: i64,
}

/// The argv, environment and tags of a start.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchPlan {
    pub argv: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// Names of the tmux server's variables that the process must not get.
    pub removed_env: Vec<String>,
    pub tags: Vec<(&'static str, String)>,
    /// First prompt that must be typed once the program is ready.
    pub typed_prompt: Option<String>,
    /// Whether the program gets its first prompt on the command line, and a hook reports it.
    pub reports_first_prompt: bool,
    /// Whether the tags say `starting` until the caller has seen it come up. Otherwise they say
    /// `running` from the beginning.
    pub is_awaited: bool,
    pub process_names: Vec<String>,
    /// Whether the preset's program runs, and not a custom command.
    pub runs_preset: bool,
    /// Whether trust in the folder was given on the command line.
    pub trusts_folder: bool,
    /// Whether the program runs without permission prompts.
    pub never_asks: bool,
}

/// Returns the key of an account, whose agents share usage limits: the program and its configuration
/// folder. Without a folder the program uses its default one.
pub fn account_key(harness: &str, config_dir: Option<&str>) -> String {
    format!("{harness} {}", config_dir.unwrap_or_default())
}

/// Returns whether `gt` starts the program so that it does not ask for permissions.
pub fn never_asks(role: &RoleConfig, preset: &Preset) -> bool {
    role.start.skip_permissions && !preset.command.skip_permissions.is_empty()
}

pub fn plan(request: &StartRequest<'_>) -> LaunchPlan {
    // The process names of a custom command are unknown: any live process counts.
    let own_line = request.command.is_some() || request.role.session.start_command.is_some();
    let process_names = match (&request.role.session.process_names, own_line) {
        (Some(names), _) if request.command.is_none() => names.clone(),
        (_, true) => Vec::new(),
        _ => request.preset.process.names.clone(),
    };
    let facts = EnvironmentFacts {
        identity: request.identity,
        container: request.container,
        session: request.session,
        town_root: request.town_root,
        socket: request.socket,
        preset: request.preset,
        config_dir: request.config_dir,
        process_names: &process_names,
    };
    let mut env = environment::agent_environment(
        &facts,
        request.passed_env,
        &request.role.literal_env(),
        request.extra_env,
    );
    if !request.role.start.skip_permissions && !own_line {
        for (name, value) in &request.preset.env.ask_permissions {
            // The role and the caller may override it; the environment of `gt` may not.
            let is_chosen = request.role.env.contains_key(name)
                || request.extra_env.iter().any(|(given, _)| given == name);
            if !is_chosen {
                env.insert(name.clone(), value.clone());
            }
        }
    }
    let typed = request.preset.command.prompt == PromptStyle::Typed;
    let typed_prompt = request.prompt.filter(|_| typed).map(str::to_owned);
    let is_awaited = request.is_awaited || typed_prompt.is_some();
    let (state, source) = match is_awaited {
        true => (State::Starting, StateSource::Start),
        false => (State::Running, StateSource::Process),
    };
    let mut tags = vec![
        (tag::TOWN, request.town_root.to_owned()),
        (tag::AGENT, request.identity.address()),
        (tag::SESSION, request.session.to_string()),
        (
            tag::CHAIN,
            request
                .chain
                .map_or_else(|| request.session.to_string(), str::to_owned),
        ),
        (tag::HARNESS, request.preset.name.clone()),
        (tag::MODEL, request.model.unwrap_or_default().to_owned()),
        (
            tag::ACCOUNT,
            account_key(&request.preset.name, request.config_dir),
        ),
        (tag::DIGEST, request.digest.unwrap_or_default().to_owned()),
        (tag::PROCESS_NAMES, process_names.join(",")),
        (tag::STATE, state.as_str().to_owned()),
        (tag::STATE_SINCE, request.now.to_string()),
        (tag::STATE_SOURCE, source.as_str().to_owned()),
    ];
    let auto_respawn = if request.role.start.auto_respawn {
        "1"
    } else {
        ""
    };
    tags.push((tag::AUTO_RESPAWN, auto_respawn.to_owned()));
    let never_asks = !own_line && never_asks(request.role, request.preset);
    tags.push((
        tag::NEVER_ASKS,
        if never_asks { "1" } else { "" }.to_owned(),
    ));
    tags.push((tag::SANDBOX, request.sandbox.as_str().to_owned()));
    let reports_first_prompt = request.prompt.is_some() && !typed && !own_line && request.has_hooks;
    let first_prompt = if reports_first_prompt { "1" } else { "" };
    tags.push((tag::FIRST_PROMPT, first_prompt.to_owned()));
    tags.push((tag::BACKGROUND_TASKS, String::new()));
    LaunchPlan {
        argv: argv(request),
        env,
        removed_env: Vec::new(),
        tags,
        typed_prompt,
        reports_first_prompt,
        is_awaited,
        process_names,
        runs_preset: !own_line,
        trusts_folder: request.role.start.accept_dialogs
            && !request.preset.command.trust_folder.is_empty(),
        never_asks,
    }
}

fn argv(request: &StartRequest<'_>) -> Vec<String> {
    let prompt = prompt_args(request);
    if let Some(line) = request
        .command
        .or(request.role.session.start_command.as_deref())
    {
        let shell = ["sh", "-c"].map(str::to_owned).to_vec();
        if request.command.is_some() || prompt.is_empty() {
            return [shell, vec![line.to_owned()]].concat();
        }
        // The prompt comes as an argument of the shell, never as part of its text.
        let script = vec![format!("{line} \"$@\""), "gt".to_owned()];
        return [shell, script, prompt].concat();
    }
    let command = &request.preset.command;
    let mut argv = vec![request.program.to_owned()];
    argv.extend(command.args.iter().cloned());
    if let Some(model) = request.model {
        let words = command.model_args.iter();
        argv.extend(words.map(|word| word.replace("{model}", model)));
    }
    argv.extend(match request.role.start.skip_permissions {
        true => command.skip_permissions.iter().cloned(),
        false => command.ask_permissions.iter().cloned(),
    });
    if request.role.start.accept_dialogs {
        // JSON quoting is valid TOML too.
        let folder = serde_json::Value::from(request.work_dir).to_string();
        let words = command.trust_folder.iter();
        argv.extend(words.map(|word| word.replace("{folder}", &folder)));
    }
    argv.extend(request.hook_args.iter().cloned());
    let session = request.session.to_string();
    argv.extend(match &request.conversation {
        Conversation::New => filled(&command.session_id, &session),
        Conversation::Resume(id) => filled(&command.resume, id),
        Conversation::Continue => command.r#continue.clone(),
        Conversation::Fork(id) => filled(&command.fork, id),
    });
    argv.extend(match request.conversation {
        Conversation::New => prompt
            .into_iter()
            .map(|word| beacon::argument(&word).into_owned())
            .collect(),
        // The program does not get the text of `gt prime` again.
        _ => prompt,
    });
    if let [program] = argv.as_slice() {
        // tmux hands a single word to a shell; `env` makes it two words and is no shell.
        argv = vec!["env".to_owned(), program.clone()];
    }
    argv
}

fn prompt_args(request: &StartRequest<'_>) -> Vec<String> {
    let Some(prompt) = request.prompt else {
        return Vec::new();
    };
    let command = &request.preset.command;
    match (command.prompt, &command.prompt_flag) {
        (PromptStyle::Positional, _) => vec![prompt.to_owned()],
        (PromptStyle::Flag, Some(flag)) => vec![flag.clone(), prompt.to_owned()],
        (PromptStyle::Flag, None) | (PromptStyle::Typed, _) => Vec::new(),
    }
}

fn filled(template: &[String], id: &str) -> Vec<String> {
    template
        .iter()
        .map(|word| word.replace("{id}", id))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::Role;

    fn check(harness: &str, change: impl FnOnce(&mut StartRequest<'_>), expected: &[&str]) {
        check_with(|_| {}, harness, change, expected);
    }

    fn check_with(
        change_role: impl FnOnce(&mut RoleConfig),
        harness: &str,
        change: impl FnOnce(&mut StartRequest<'_>),
        expected: &[&str],
    ) {
        assert_eq!(planned(change_role, harness, change).argv, expected);
    }

    fn planned(
        change_role: impl FnOnce(&mut RoleConfig),
        harness: &str,
        change: impl FnOnce(&mut StartRequest<'_>),
    ) -> LaunchPlan {
        let mut role = Role::Crew.resolve(&[]).unwrap().value;
        change_role(&mut role);
        let identity = Identity::crew("gastown", "max");
        let preset = crate::harness::resolve(harness, None).unwrap().value;
        let mut request = StartRequest {
            identity: &identity,
            container: "gt-crew-max",
            session: "0193a2b4-c5d6-7abc-8def-0123456789ab".parse().unwrap(),
            chain: None,
            work_dir: "/t/gastown/crew/max",
            town_root: "/t",
            socket: "default",
            role: &role,
            preset: &preset,
            program: harness,
            command: None,
            prompt: Some("hi; $(x)"),
            conversation: Conversation::New,
            config_dir: None,
            model: None,
            digest: None,
            sandbox: SandboxLevel::None,
            passed_env: &[],
            extra_env: &[],
            hook_args: &[],
            has_hooks: false,
            is_awaited: true,
            now: 0,
        };
        change(&mut request);
        plan(&request)
    }

    #[test]
    fn long_first_prompt_is_not_in_the_arguments() {
        let long: &'static str = "secret ".repeat(200).leak();
        let argv = |harness: &str, conversation: Conversation| {
            let plan = planned(
                |_| {},
                harness,
                |request| {
                    request.prompt = Some(long);
                    request.conversation = conversation;
                },
            );
            (plan.argv.join(" "), plan.typed_prompt)
        };
        for harness in ["claude", "codex", "gemini", "demo"] {
            let (words, typed) = argv(harness, Conversation::New);
            assert!(words.contains("`gt prime`"), "{harness}: {words}");
            assert!(!words.contains("secret"), "{harness}: {words}");
            assert_eq!(typed, None);
        }
        let (words, typed) = argv("opencode", Conversation::New);
        assert!(!words.contains("secret"), "{words}");
        assert_eq!(typed.as_deref(), Some(long));
        let (words, _) = argv("claude", Conversation::Resume("id".to_owned()));
        assert!(words.contains("secret"), "it is not primed again: {words}");
    }

    #[test]
    fn model_is_named_in_the_words_of_the_program() {
        let argv = |harness: &str| {
            let plan = planned(|_| {}, harness, |request| request.model = Some("big"));
            plan.argv.join(" ")
        };
        for harness in ["claude", "codex", "gemini", "opencode", "demo"] {
            assert!(argv(harness).contains("--model big"), "{harness}");
        }
        assert!(!argv("amp").contains("big"));
    }

    #[test]
    fn account_is_the_program_and_its_folder() {
        let account = |folder| {
            let plan = planned(|_| {}, "claude", |request| request.config_dir = folder);
            let tags: BTreeMap<_, _> = plan.tags.into_iter().collect();
            tags[tag::ACCOUNT].clone()
        };
        assert_eq!(account(Some("/a b")), "claude /a b");
        // Set although there is no folder, so that it says that there is none.
        assert_eq!(account(None), "claude ");
    }

    #[test]
    fn playback_that_is_not_awaited_runs_from_the_beginning() {
        let state = |harness: &str, is_awaited: bool| {
            let plan = planned(|_| {}, harness, |request| request.is_awaited = is_awaited);
            let tags: BTreeMap<_, _> = plan.tags.into_iter().collect();
            [tag::STATE, tag::STATE_SOURCE].map(|tag| tags[tag].clone())
        };
        assert_eq!(state("claude", true), ["starting", "start"]);
        assert_eq!(state("claude", false), ["running", "process"]);
        // A program whose prompt is typed is always awaited.
        assert_eq!(state("aider", false), ["starting", "start"]);
    }

    #[test]
    fn the_program_is_executed_without_a_shell() {
        check(
            "claude",
            |_| {},
            &[
                "claude",
                "--dangerously-skip-permissions",
                "--session-id",
                "0193a2b4-c5d6-7abc-8def-0123456789ab",
                "hi; $(x)",
            ],
        );
        check(
            "claude",
            |request| request.conversation = Conversation::Resume("abc".into()),
            &[
                "claude",
                "--dangerously-skip-permissions",
                "--resume",
                "abc",
                "hi; $(x)",
            ],
        );
    }

    #[test]
    fn program_that_must_ask_gets_its_argument() {
        for (harness, words) in [
            ("claude", &["--permission-mode", "default"][..]),
            (
                "codex",
                &["--ask-for-approval", "on-request", "--sandbox", "read-only"],
            ),
            ("gemini", &["--approval-mode", "default"]),
        ] {
            let plan = planned(|role| role.start.skip_permissions = false, harness, |_| {});
            assert!(
                plan.argv.windows(words.len()).any(|it| it == words),
                "{:?}",
                plan.argv
            );
            let skips = planned(|_| {}, harness, |_| {});
            assert!(!skips.argv.contains(&words[0].to_owned()), "{harness}");
        }
        let env = |skips: bool| {
            let plan = planned(
                |role| role.start.skip_permissions = skips,
                "opencode",
                |_| {},
            );
            plan.env.get("OPENCODE_PERMISSION").cloned()
        };
        assert!(env(false).unwrap().contains("\"bash\":\"ask\""));
        assert_eq!(env(true), None);
        // The mode in the environment of `gt` does not win; the caller's does.
        let auto: &[_] = vec![("GOOSE_MODE".to_owned(), "auto".to_owned())].leak();
        let mode = |given: &'static [(String, String)]| {
            let plan = planned(
                |role| role.start.skip_permissions = false,
                "goose",
                |request| (request.passed_env, request.extra_env) = (auto, given),
            );
            plan.env["GOOSE_MODE"].clone()
        };
        assert_eq!(mode(&[]), "approve");
        assert_eq!(mode(auto), "auto");
    }

    #[test]
    fn a_configured_shell_line_gets_the_prompt_as_an_argument() {
        check_with(
            |role| role.session.start_command = Some("exec claude --verbose".into()),
            "claude",
            |_| {},
            &["sh", "-c", "exec claude --verbose \"$@\"", "gt", "hi; $(x)"],
        );
        check(
            "claude",
            |request| request.command = Some("sleep 5"),
            &["sh", "-c", "sleep 5"],
        );
    }
}
