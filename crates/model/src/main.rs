//! `gt-fake-model`: the fake model server as a program, for tests that run their agents in a
//! network namespace of their own, and for trying things by hand.

use clap::Parser;
use gt_model::{FakeModel, Options};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// A model server that only pretends, for tests with the real agent programs.
///
/// Prints `listening on http://127.0.0.1:PORT` and serves until it is ended.
#[derive(Debug, Parser)]
#[command(name = "gt-fake-model", version)]
struct Args {
    /// The port on 127.0.0.1; 0 for any that is free.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Append a JSON line per request to this file.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Write the body of every request into this folder, named by its number in the log.
    #[arg(long, value_name = "FOLDER")]
    bodies: Option<PathBuf>,
    /// End when standard input ends, and so with the process that holds its other end.
    #[arg(long)]
    until_eof: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where standard error is gone, the status has to do.
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
