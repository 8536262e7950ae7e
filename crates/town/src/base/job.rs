//! Runs a program as a job of this terminal, as a shell does.
//!
//! The program gets a process group of its own and the terminal, so that Ctrl-C and resizes reach
//! it, and this process sees how it ends. SIGTERM, SIGHUP and SIGINT are passed on to the program
//! inside the wrapper (bubblewrap), which would otherwise end without it.

use crate::base::processes;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The end of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobEnd {
    Exited(u8),
    /// Ended by this signal.
    Signalled(i32),
}

/// A job that runs.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pid: Pid,
}

impl Job {
    /// Starts the job and gives it the terminal, if there is one.
    pub fn start(mut command: Command) -> io::Result<Job> {
        let child = command.process_group(0).spawn()?;
        let pid = Pid::from_child(&child);
        // Without a terminal, as in a test, there is nothing to give.
        let _ = rustix::termios::tcsetpgrp(io::stdin().as_fd(), pid);
        Ok(Job { pid })
    }

    /// Starts the job in the process group of this process.
    pub fn start_in_group(mut command: Command) -> io::Result<Job> {
        let pid = Pid::from_child(&command.spawn()?);
        Ok(Job { pid })
    }

    /// Waits for the end of the job.
    pub fn wait(self) -> io::Result<JobEnd> {
        loop {
            let status = match rustix::process::waitpid(Some(self.pid), WaitOptions::UNTRACED) {
                Ok(Some((_, status))) => status,
                Ok(None) | Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            if let Some(end) = self.end(status) {
                return Ok(end);
            }
        }
    }

    /// Waits for the end of the job as the first process of a container. Also reaps orphans: the
    /// kernel makes them children of this process.
    pub fn wait_as_init(self) -> io::Result<JobEnd> {
        loop {
            let (pid, status) = match rustix::process::wait(WaitOptions::UNTRACED) {
                Ok(Some(ended)) => ended,
                Ok(None) | Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            if pid != self.pid {
                continue;
            }
            if let Some(end) = self.end(status) {
                return Ok(end);
            }
        }
    }

    /// Returns the end of the job; `None` if it was only stopped. Continues a stopped job, because
    /// there is no shell that would.
    fn end(self, status: WaitStatus) -> Option<JobEnd> {
        if let Some(code) = status.exit_status() {
            return Some(JobEnd::Exited(u8::try_from(code).unwrap_or(u8::MAX)));
        }
        if status.stopped() {
            // It may have ended by now.
            let _ = rustix::process::kill_process_group(self.pid, Signal::CONT);
        }
        status.terminating_signal().map(JobEnd::Signalled)
    }

    /// Sends a signal to the job itself.
    pub fn signal_directly(self, signal: Signal) {
        // It may have ended by now.
        let _ = rustix::process::kill_process(self.pid, signal);
    }

    /// Sends a signal to the process group of the job, which its first process leads.
    pub fn signal_group(self, signal: Signal) {
        // It may have ended by now.
        let _ = rustix::process::kill_process_group(self.pid, signal);
    }

    /// Sends a signal to the program inside the wrapper, or to the wrapper if there is none yet.
    pub fn signal(self, signal: Signal) {
        let wrapper = self.pid.as_raw_nonzero().get().unsigned_abs();
        let table = processes::trees(&[wrapper]);
        let inner = table.descendants(wrapper).into_iter().filter(|pid| {
            let process = table.get(*pid);
            process.is_some_and(|process| process.name != "bwrap" && !process.zombie)
        });
        let is_top = |pid: &u32| {
            let parent = table
                .get(*pid)
                .and_then(|process| table.get(process.parent));
            parent.is_some_and(|parent| parent.name == "bwrap")
        };
        let program = inner.filter(is_top).min();
        let target = program
            .and_then(|pid| i32::try_from(pid).ok())
            .and_then(Pid::from_raw);
        // It may have ended by now.
        let _ = rustix::process::kill_process(target.unwrap_or(self.pid), signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> JobEnd {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", line])
            .stdin(std::process::Stdio::null());
        Job::start(command).unwrap().wait().unwrap()
    }

    #[test]
    fn exit_code_and_signal_of_a_job_are_distinct() {
        assert_eq!(run("exit 7"), JobEnd::Exited(7));
        assert_eq!(run("kill -TERM $$"), JobEnd::Signalled(15));
        assert_eq!(run("kill -STOP $$; exit 3"), JobEnd::Exited(3));
    }
}
