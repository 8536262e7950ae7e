//! Agents as tmux shows them: containers, windows, hooks, screens, recordings.

pub mod adopted;
pub mod appearance;
pub(crate) mod background_tasks;
pub mod broker;
pub mod containers;
pub mod dev_servers;
pub(crate) mod dnd_timer;
pub(crate) mod environment;
pub mod first_process;
pub(crate) mod limit_timer;
pub mod peek;
pub mod pidfile;
pub mod recording;
pub(crate) mod save_schedule;
pub mod tmux_conf;
pub mod tmux_hooks;
pub mod watch;
pub mod windows;
