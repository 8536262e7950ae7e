use super::CommandResult;
use crate::raw_mode::RawMode;
use clap::Args;
use gt_core::Problem;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{read, retry_on_intr};
use rustix::stdio::stdin;
use rustix::termios::tcgetwinsize;
use std::io::{Write, stdout};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Print a text into a pane's history, then exec a program; started by tmux for a restore
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The text, which may be announced by a file FILE.soon; it is removed once the terminal has shown it
    file: PathBuf,
    /// Start the program as a login shell
    #[arg(long)]
    login: bool,
    #[arg(last = true, required = true)]
    program: Vec<std::ffi::OsString>,
}

/// Maximum wait for the terminal's answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum wait until tmux reports a new size to the kernel; it collects changes for a while.
const SIZE_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum wait for an announced text.
const TEXT_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) fn run(args: &ReplayArgs) -> CommandResult {
    let soon = args.file.with_extension("txt.soon");
    let began = Instant::now();
    while soon.exists() && began.elapsed() < TEXT_TIMEOUT {
        std::thread::sleep(Duration::from_millis(5));
    }
    // The program starts even if the text cannot be shown.
    let _ = show(&args.file, !args.login);
    let _ = std::fs::remove_file(&args.file);
    let Some((program, words)) = args.program.split_first() else {
        return Err(Problem::usage("there is no program to become"));
    };
    let mut command = std::process::Command::new(program);
    command.args(words);
    if args.login {
        let name = Path::new(program).file_name().unwrap_or(program);
        let mut zeroth = std::ffi::OsString::from("-");
        zeroth.push(name);
        command.arg0(zeroth);
    }
    let error = command.exec();
    let name = program.to_string_lossy();
    Err(Problem::environment(format!("cannot start {name}")).caused_by(error))
}

/// Writes the text. Scrolls it out of sight if the program uses the whole screen. The terminal
/// answers in order, so its answer shows that everything before it was drawn.
fn show(file: &Path, out_of_sight: bool) -> std::io::Result<()> {
    let text = std::fs::read_to_string(file)?;
    if !out_of_sight {
        return stdout().lock().write_all(text.as_bytes());
    }
    let _raw = RawMode::enter()?;
    let mut out = stdout().lock();
    let Some(rows) = await_size(&mut out)? else {
        return Ok(());
    };
    out.write_all(text.replace('\n', "\r\n").as_bytes())?;
    let Some((row, _)) = ask_place(&mut out, stdin())? else {
        return Ok(());
    };
    // Only lines that leave at the top go into the history.
    let up = "\n".repeat(usize::from(row).saturating_sub(1));
    write!(out, "\x1b[{rows};1H{up}\x1b[H")?;
    ask_place(&mut out, stdin())?;
    Ok(())
}

/// Waits until the kernel has the terminal's size, and returns its rows. tmux reports the size
/// late, and the program would draw for the old one.
fn await_size(out: &mut impl Write) -> std::io::Result<Option<u16>> {
    let began = Instant::now();
    loop {
        out.write_all(b"\x1b[9999;9999H")?;
        let Some((rows, columns)) = ask_place(out, stdin())? else {
            return Ok(None);
        };
        let known = tcgetwinsize(stdout())?;
        if (known.ws_row, known.ws_col) == (rows, columns) || began.elapsed() > SIZE_TIMEOUT {
            out.write_all(b"\x1b[H")?;
            return Ok(Some(rows));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Asks the terminal for the cursor's row and column, and waits for the answer. Reads without a
/// buffer: `poll` does not see input that a buffer already holds.
fn ask_place(out: &mut impl Write, input: impl AsFd) -> std::io::Result<Option<(u16, u16)>> {
    out.write_all(b"\x1b[6n")?;
    out.flush()?;
    let deadline = Instant::now() + TIMEOUT;
    let mut seen = Vec::new();
    loop {
        if let Some(place) = place_of(&seen) {
            return Ok(Some(place));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let wait = Timespec::try_from(left).ok();
        let mut polled = [PollFd::new(&input, PollFlags::IN)];
        match poll(&mut polled, wait.as_ref()) {
            _ if left.is_zero() => return Ok(None),
            Ok(0) => return Ok(None),
            // A signal, such as that of a new size: the rest of the time is left.
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
        let mut piece = [0; 256];
        match retry_on_intr(|| read(&input, &mut piece))? {
            0 => return Ok(None),
            length => seen.extend_from_slice(&piece[..length]),
        }
    }
}

/// Finds the row and column in an answer such as `ESC [ 12 ; 1 R`, with any other input around it.
fn place_of(bytes: &[u8]) -> Option<(u16, u16)> {
    let text = String::from_utf8_lossy(bytes);
    text.split("\x1b[").skip(1).find_map(|piece| {
        let (row, column) = piece.split_once('R')?.0.split_once(';')?;
        Some((row.parse().ok()?, column.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_behind_much_other_input_is_found() {
        let (input, mut keys) = std::io::pipe().unwrap();
        keys.write_all(&[b'x'; 3_000]).unwrap();
        keys.write_all(b"\x1b[3;40R").unwrap();
        let began = Instant::now();
        let place = ask_place(&mut Vec::new(), &input).unwrap();
        assert_eq!(place, Some((3, 40)));
        assert!(began.elapsed() < TIMEOUT, "it was there");
        drop(keys);
        assert_eq!(ask_place(&mut Vec::new(), &input).unwrap(), None);
    }

    #[test]
    fn the_answer_is_found_among_keys() {
        assert_eq!(place_of(b"\x1b[12;1R"), Some((12, 1)));
        assert_eq!(place_of(b"abc\x1b[A\x1b[3;40Rx"), Some((3, 40)));
        for bytes in [&b""[..], b"\x1b[12;1", b"\x1b[1;xR", b"12;1R"] {
            assert_eq!(place_of(bytes), None, "{bytes:?}");
        }
    }
}
