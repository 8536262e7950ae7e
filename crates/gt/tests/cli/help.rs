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
      agent        Agents that stand alone, in any folder: containers `agent_{slug}`
      start        Start agents of any role
      stop         Stop agents of any role
      restart      Stop agents of any role if they run, and start them
      interrupt    Stop an agent's turn, as its program's own key does; the agent
                   stays
      attach       Go to an agent's container
      peek         Show an agent's screen
      wait         Wait until an agent is in a state; for scripts
      watch        Tell every change of an agent's state, as it happens
      adopt        Make an agent of a program that runs in a tmux pane already
      up           Start the town's own agents and those of its rigs
      down         Stop the town's own agents and those of its rigs
      save         Save all containers, for `gt restore`
      restore      Bring back the containers of a save
      estop        Stop everything at once: interrupt all agents, and block starts,
                   messages and merges
      thaw         End the emergency stop, and show what continues

    Messages:
      nudge        Give an agent a message
      answer       Answer what an agent asks
      broadcast    Give many agents the same message, at the same time
      keys         Press keys in an agent's own pane; for people who know what it
                   shows
      mail         Mail between agents and people
      escalate     Ask for help: the mayor and people are told, until it is
                   acknowledged
      notify       Show how you are told that an agent waits, is done or has died
      dnd          Do not disturb: hold messages to an agent, or notifications to
                   you, for a while

    Work:
      work         Work items: what is to be done
      sling        Give work items to agents, and start those
      schedule     Work items that wait for a free polecat, and recurring work
      task         Tasks: one work item each, with a worktree, a container and an
                   agent of its own
      dev          Servers for the time of development, in windows beside an agent
      formula      Formulas: how a kind of work is done, step by step

    Merging:
      mq           The merge queue: branches of finished work, on their way into the
                   base
      done         Hand in what is on the hook: queued for merging, and the session
                   is over

    History:
      sessions     The history of sessions
      seance       Talk to earlier sessions of agents
      costs        Add up tokens and costs by day, item, agent, model or rig
      budget       Show the budgets with what is spent, or raise one
      feed         Show the events of the town that matter to people
      events       Show the events of the town, the newest last
      krc          Retention of events: how long they are kept, and what they are
                   still worth
      sync         Make what is remembered agree with tmux

    Town roles:
      mayor        The mayor, who coordinates the whole town
      deacon       The deacon, who keeps the town healthy
      witness      A rig's witness, who watches over its polecats
      refinery     A rig's refinery, which merges what its workers finish
      boot         Boot, which watches over the deacon
      dog          Dogs: helpers that run one errand each and end
      patrol       Look after the town once: dead, hung and idle agents, old queues,
                   leftovers

    Setup:
      role         Roles: what agents are for, and how each is started
      harness      Harnesses: the agent programs that can be run
      account      Accounts: configuration folders of agent programs, each with a
                   login of its own
      daemon       The process that watches an unattended town
      doctor       Check the machine and the town
      logs         Show the warnings and errors of gt itself, the newest last
      tmux-conf    Print the lines for ~/.tmux.conf that tell gt of containers that
                   come and go
      completions  Print the completion script for a shell

    For agents and hooks:
      prime        Tell an agent who it is, what it has to do, and what was left to
                   it
      hook         Show what is on an agent's hook, or put a work item there
      unhook       Take a work item off an agent's hook: it is open again
      handoff      Hand over to a new session of the same agent, in the same
                   container
      checkpoint   Where an agent's work stands, for the one that comes after a
                   crash
      mol          Molecules: a formula poured for one agent, and the way through
                   its steps
      step         The steps of an agent's work; for agents
      signal       Note what an agent's hook reports; for hooks, with their JSON on
                   standard input
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
      sessions find     List sessions, the newest first
      sessions show     Show all that is known of one session
      sessions chain    Show the sessions that went on with each other's work
      sessions stats    Add up sessions, time, tokens and cost, by agent, rig or day
      sessions replay   Play what was recorded of a session, in this terminal
      sessions export   Print every session as a line of JSON, the oldest first
      sessions rebuild  Rebuild the index from the journal, the archive and tmux
      sessions archive  Move old sessions out of the journal into compressed files
      seance            Talk to earlier sessions of agents
      costs             Add up tokens and costs by day, item, agent, model or rig
      budget            Show the budgets with what is spent, or raise one
      budget raise      Raise a budget by an amount; agents that it has paused
                        continue
      feed              Show the events of the town that matter to people
      events            Show the events of the town, the newest last
      events emit       Write an event; for scripts and agents
      krc stats         Show what the log and the feed hold, type by type
      krc prune         Drop events whose time is over
      krc config        Show how long each type is kept, and by which curve its
                        value falls
      sync              Make what is remembered agree with tmux

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
