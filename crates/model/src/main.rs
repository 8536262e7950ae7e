//! `gt-fake-model`: the fake model server as a program, for tests that run their agents in a
//! separate network namespace, and for use by hand.

use clap::Parser;
use gt_model::{FakeModel, Options};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// A fake model server, for tests with the real agent programs.
///
/// Prints `listening on http://127.0.0.1:PORT` and serves until it is stopped.
#[derive(Debug, Parser)]
#[command(name = "gt-fake-model", version)]
struct Args {
    /// Port on 127.0.0.1; 0 for any free port.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Append a JSON line per request to this file.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Write the body of every request into this folder, named by its number in the log.
    #[arg(long, value_name = "FOLDER")]
    bodies: Option<PathBuf>,
    /// End at the end of standard input, and so with the process that holds its other end.
    #[arg(long)]
    until_eof: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed, the exit status must do.
            let _ = writeln!(io::stderr(), "gt-fake-model: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args) -> io::Result<()> {
    let model = FakeModel::start_with(&Options {
        port: args.port,
        log: args.log,
        bodies: args.bodies,
        forget: true,
    })?;
    let mut stdout = io::stdout();
    writeln!(stdout, "listening on {}", model.url())?;
    stdout.flush()?;
    if args.until_eof {
        io::copy(&mut io::stdin(), &mut io::sink())?;
    } else {
        loop {
            std::thread::park();
        }
    }
    Ok(())
}
