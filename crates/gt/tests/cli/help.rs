//! `gt help`, `gt help GROUP` and `gt` alone.

use crate::env::{Answer, TestEnv, run};
use insta::assert_snapshot;
use unicode_width::UnicodeWidthStr;

/// Runs `gt` for a terminal of this width.
pub(crate) fn at_width(env: &TestEnv, columns: usize, args: &[&str]) -> Answer {
    run(env.gt_command(args).env("COLUMNS", columns.to_string()))
}

#[track_caller]
pub(crate) fn assert_fits(text: &str, columns: usize) {
    for line in text.lines() {
        assert!(line.width() <= columns, "{} columns: {line}", line.width());
    }
}

#[test]
fn help_lists_the_commands_by_group_and_fits_the_width() {
    let env = TestEnv::empty();
    assert_snapshot!(at_width(&env, 80, &["help"]).ok().stdout, @"
    Run AI coding agents as named tmux sessions, and manage their whole lifecycle

    Usage: gt [OPTIONS] [COMMAND]

    Start here:
      init         Make a town: the folder that holds everything
      rig          Rigs: the repositories of a town
      demo         Make a small town and try everything on the built-in demo agent
      board        The board: all work and all agents on one screen, from idea to
                   merged
      status       Show the town: its rigs, its agents, what needs attention

    Agents:
      agents       List the agents that run
      crew         Crew: people's own long-lived workers, each in a worktree of a
                   rig
      polecat      Polecats: workers that take one work item each
      agent        Standalone agents in any folder: containers `agent_{slug}`
      start        Start agents of any role
      stop         Stop agents of any role
      restart      Stop agents of any role if they run, and start them
      interrupt    Stop an agent's turn with the keys of its program; the agent
                   keeps running
      attach       Open an agent's container in this terminal
      peek         Show an agent's screen
      wait         Wait until an agent is in a state; for scripts
      watch        Print every change of an agent's state as it happens
      adopt        Make a program that already runs in a tmux pane an agent
      up           Start the town's own agents and those of its rigs
      down         Stop the town's own agents and those of its rigs
      save         Save all containers, for `gt restore`
      restore      Bring back the containers of a save
      estop        Stop everything at once: interrupt all agents, and block starts,
                   messages and merges
      thaw         End the emergency stop

    Messages:
      nudge        Send a message to an agent
      answer       Answer the question of an agent
      broadcast    Send the same message to many agents at once
      keys         Press keys in an agent's pane, without reading its screen first
      mail         Mail between agents and people
      escalate     Ask for help: notify the mayor and people until it is
                   acknowledged
      notify       Show the notification settings, or send a test
      dnd          Do not disturb: hold messages to an agent, or notifications to
                   you, for a while

    Work:
      work         Work items
      sling        Assign work items to agents, and start the agents
      schedule     Work items that wait for a free polecat, and recurring work
      task         Tasks: one work item each, with a worktree, a container and an
                   agent of its own
      dev          Development servers, in windows beside an agent
      formula      Formulas: how a kind of work is done, step by step

    Merging:
      mq           The merge queue: branches of finished work that are merged into
                   the base
      done         Submit the work on the hook: queue its branch for merging, and
                   end the session

    History:
      sessions     The history of sessions
      seance       Talk to earlier sessions of agents
      costs        Add up tokens and costs by day, item, agent, model or rig
      budget       Show the budgets and their spending, or raise one
      events       Show the events of the town, the newest last
      sync         Reconcile the recorded sessions with tmux

    Town roles:
      mayor        The mayor, which coordinates the whole town
      deacon       The deacon, which decides about problems of the town
      witness      A rig's witness, which decides about polecats that need help
      refinery     A rig's refinery, which decides about merges that need judgement
      boot         Boot, which decides about a deacon that hangs
      dog          Dogs: helpers that run one errand each and end
      patrol       Check the town once, and act on dead, hung and idle agents,
                   stalled queues and leftovers

    Setup:
      config       Settings of the town, its rigs, roles and harnesses, and of
                   projects
      project      Commands that a repository brings along: show, approve, withdraw
      role         Roles: what agents are for, and how each is started
      harness      Harnesses: the agent programs that can be run
      account      Accounts: configuration folders of agent programs, each with a
                   login of its own
      daemon       The process that watches an unattended town
      dashboard    Open the page of the town in a browser
      web          Access to the HTTP API
      doctor       Check the machine and the town
      logs         Show the warnings and errors of gt itself, the newest last
      tmux-conf    Print the lines for ~/.tmux.conf that notify gt when containers
                   come and go
      completions  Print the completion script for a shell

    For agents and hooks:
      prime        Print an agent's context: its identity, its work, and what
                   earlier sessions left
      hook         Show what is on an agent's hook, or put a work item there
      unhook       Take a work item off an agent's hook: it is open again
      handoff      Hand over to a new session of the same agent, in the same
                   container
      checkpoint   Checkpoints: the state of an agent's work, for the next session
                   after a crash
      mol          Molecules: formulas poured for one agent, and the progress
                   through their steps
      step         The steps of an agent's work; for agents
      signal       Record the report of an agent's hook; for hooks, with their JSON
                   on standard input
      status-line  Print one short line for tmux's status line

    Options:
      -h, --help         Print help
      -V, --version      Print version
          --town <PATH>  The town to work on [default: GT_ROOT, then this folder and
                         its parents, then ~/gt]
          --json         Answer with one JSON document on stdout, and errors as JSON
                         on stderr
      -v, --verbose      Print the steps of the command on stderr; GT_LOG selects
                         them [env: GT_LOG]

    Examples:
      gt init # makes the town ~/gt
      gt rig add ~/src/hello
      gt sling 'Fix the typo in README.md'
      gt agents
      gt board

    `gt help GROUP` lists a group with its subcommands: start, agents, messages,
    work, merging, history, roles, setup, hooks. `gt help COMMAND` explains a
    command.
    ");
    for columns in [60, 80, 140] {
        let help = at_width(&env, columns, &["--help"]).ok().stdout;
        let (list, _) = help.split_once("Options:").unwrap();
        assert_fits(list, columns);
    }
    assert!(!env.gt(&["help"]).stdout.contains("demo-agent"));
}

#[test]
fn help_of_a_group_lists_its_subcommands() {
    let env = TestEnv::empty();
    assert_snapshot!(at_width(&env, 80, &["help", "history"]).ok().stdout, @"
    History:
      sessions list     List sessions, the newest first
      sessions show     Show one session in full
      sessions chain    Show a chain: the sessions that continued each other's work
      sessions stats    Add up sessions, time, tokens and cost, by agent, rig or day
      sessions replay   Play the recording of a session in this terminal
      sessions export   Print every session as a line of JSON, the oldest first
      sessions rebuild  Rebuild the index from the journal, the archive and tmux
      sessions archive  Move old sessions out of the journal into compressed files
      seance            Talk to earlier sessions of agents
      costs             Add up tokens and costs by day, item, agent, model or rig
      budget            Show the budgets and their spending, or raise one
      budget raise      Raise a budget by an amount; agents that it has paused
                        continue
      events            Show the events of the town, the newest last
      events emit       Write an event; for scripts and agents
      events verify     Check that the log is as gt wrote it, by its hash chain
      events stats      Show statistics of the log and the feed, by event type
      events prune      Remove expired events
      events retention  Show the retention and the decay curve of each event type
      sync              Reconcile the recorded sessions with tmux

    `gt help COMMAND` explains a command.
    ");
    // A command has the same name.
    let work = env.gt(&["help", "work"]).ok().stdout;
    assert!(work.starts_with(&env.gt(&["work", "--help"]).ok().stdout));
    assert!(
        work.contains("Work:\n") && work.contains("  sling "),
        "{work}"
    );
    let command = env.gt(&["help", "mail", "send"]).ok().stdout;
    assert_eq!(command, env.gt(&["mail", "send", "--help"]).ok().stdout);
    assert!(command.contains("Examples:\n  gt mail send "), "{command}");
    env.gt(&["help", "nonsense"]).fails(2);
}

#[test]
fn gt_alone_shows_the_first_commands_or_the_status() {
    let env = TestEnv::empty();
    assert_snapshot!(env.snapshot(&[]), @r"
        exit code: 0
        --- stdout
        gt runs AI coding agents as named tmux sessions. There is no town here yet:

          gt init  makes a town, the folder for everything, in ~/gt
          gt rig add PATH-OR-URL  adds a git repository to the town
          gt board  shows all work and all agents on one screen

        `gt demo` shows everything with a built-in agent, `gt help` lists the commands.
        ");
    env.gt(&["--json"]).fails(3);
    env.gt(&["init"]).ok();
    assert_snapshot!(env.snapshot(&[]), @"
    exit code: 0
    --- stdout
    gt at ~/gt (tmux socket: ~/s)
      No rigs: `gt rig add PATH-OR-URL` adds a repository.
    Agents: nothing runs.
    ");
    assert_eq!(env.gt(&[]).ok().stdout, env.gt(&["status"]).ok().stdout);
    assert_eq!(env.json(&[]), env.json(&["status"]));
    env.gt(&["--town", "nowhere"]).fails(3);
}

#[test]
fn version_names_the_release() {
    let env = TestEnv::empty();
    let version = env.gt(&["--version"]).ok().stdout;
    let expected = concat!("gt ", env!("CARGO_PKG_VERSION"));
    assert!(version.starts_with(expected), "{version}");
    // A release build from a checkout adds its commit and date.
    let rest = version[expected.len()..].trim();
    let is_commit = rest.starts_with('(') && rest.contains(" 20") && rest.ends_with(')');
    assert!(rest.is_empty() || is_commit, "{version}");
}
